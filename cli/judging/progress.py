"""The progress of judging many segments, for a terminal."""

import sys
from typing import TYPE_CHECKING

from cli.console import overwrite_line, print_status

if TYPE_CHECKING:
    from services.judge.offline.rejudge import RejudgeCounts


class JudgingProgress:
    """Shows the progress of a pass: one line on a terminal; elsewhere only a problem, once until it is resolved."""

    def __init__(self) -> None:
        self._problem = ""

    def __call__(self, done: "RejudgeCounts", problem: str) -> None:
        waiting = f"retrying: {problem}"
        if sys.stderr.isatty():
            counts = f"{done.judged} judged, {done.abstained} abstained, {done.dead} dead"
            overwrite_line(f"{counts}; {waiting}" if problem else counts)
        elif problem and not self._problem:
            print_status(waiting)
        self._problem = problem
