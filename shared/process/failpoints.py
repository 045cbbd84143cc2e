"""Named places where tests crash a process or inject an error: `failpoint("judge.after_score")`. Otherwise a no-op.

`ZELDA_FAILPOINTS="judge.after_score=exit;judge.before_ack=error:2"` kills the process (SIGKILL) at the first one and
raises Transient twice at the second. Production images set ZELDA_PRODUCTION and then refuse to start with failpoints.
"""

import os
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast

from shared.errors import Transient

VARIABLE: Final = "ZELDA_FAILPOINTS"
PRODUCTION: Final = "ZELDA_PRODUCTION"
_ENTRY: Final = re.compile(r"([a-z]+(?:\.[a-z_]+)+)=(exit|error)(?::([1-9][0-9]{0,5}))?")

Action = Literal["exit", "error"]


@dataclass(slots=True)
class _Failpoint:
    action: Action
    number: int  # exit: the visit that kills; error: the number of failing visits
    visits: int = 0


_armed: dict[str, _Failpoint] = {}


def arm(environ: Mapping[str, str] = os.environ) -> None:
    """Arm the failpoints of the variable, replacing all earlier ones. Raises ValueError when it is malformed."""
    _armed.clear()
    text = environ.get(VARIABLE, "")
    if text and environ.get(PRODUCTION):
        raise ValueError(f"{VARIABLE} is set in a production image: unset it")
    for entry in filter(None, text.split(";")):
        match = _ENTRY.fullmatch(entry.strip())
        if match is None:
            raise ValueError(f"{VARIABLE}: {entry!r:.60} is not NAME=exit[:VISIT] or NAME=error[:TIMES]")
        _armed[match[1]] = _Failpoint(cast(Action, match[2]), int(match[3] or 1))


def failpoint(name: str) -> None:
    """Pass the failpoint `name`: do nothing, kill the process (SIGKILL), or raise Transient."""
    point = _armed.get(name)
    if point is None:
        return
    point.visits += 1
    if point.action == "exit" and point.visits == point.number:
        os.kill(os.getpid(), signal.SIGKILL)
    if point.action == "error" and point.visits <= point.number:
        raise Transient(f"failpoint {name} (visit {point.visits})")
