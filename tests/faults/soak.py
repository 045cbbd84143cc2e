"""Faults at random moments on the whole ring, for a night or before a release: `python -m tests.faults.soak --help`.

Every round is one run of real processes under one kind of fault. All its epochs must be there, every segment that an
account names must be judged, and none twice; unless the store was away, segments and scores must be those of a run that
was left alone. One line tells each round; the exit code is 1 if one of them went wrong.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.faults.checker import Audit
from tests.faults.stage import stage
from tests.faults.torments import COSTS_SEGMENTS, TORMENTS, Torment, Wires, nothing
from tests.faults.wire import Wire, laid

EPOCHS: Final = 4
LONGEST_S: Final = 900.0  # a supervisor waits up to 15 s before it starts again what is killed often


@dataclass(frozen=True, slots=True)
class Round:
    """A run to its end: how it ended, what happened to it, and what it left."""

    state: str
    seconds: float
    told: str
    audit: Audit

    def wrong(self) -> list[str]:
        """Everything that is not as promised; empty if all is."""
        found = self.audit
        wrong = found.verdict()
        if self.state != "finished" or found.epochs != EPOCHS:
            wrong.append(f"the run {self.state} with {found.epochs} epochs of {EPOCHS}")
        if others := sorted(name for name, (status, _) in found.scores.items() if status != "judged"):
            wrong.append(f"{len(others)} segments not judged: {others[:5]}")
        return wrong

    def differs(self, undisturbed: Audit) -> list[str]:
        """Where segments or scores are others than those of a run that was left alone; empty if they are the same."""
        found, wanted = self.audit.scores, undisturbed.scores
        others = sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))
        return [f"{len(others)} segments of other play: {others[:5]}"] if others else []

    def line(self, wrong: Sequence[str]) -> str:
        """What a person wants to know of it."""
        end = f"WRONG: {'; '.join(wrong)}" if wrong else f"{len(self.audit.scores)} segments, as it should be"
        return f"{self.state} after {self.seconds:.0f} s; {self.told}; {end}"


async def played(torment: Torment, seed: int) -> Round:
    """One round. Its bus and its store are behind wires."""
    wires: Wires = {"bus": Wire(seed=seed), "store": Wire(seed=seed)}
    with tempfile.TemporaryDirectory(prefix="soak-") as root:
        async with (
            laid(wires["bus"]),
            laid(wires["store"]),
            stage(Path(root), wires["store"], wires["bus"]) as ring,
            asyncio.TaskGroup() as group,
        ):
            await ring.start(epochs=EPOCHS)
            started = time.monotonic()
            trouble = group.create_task(torment(ring, wires, random.Random(seed)))
            state = await ring.ended(LONGEST_S)
            seconds = time.monotonic() - started
            told = trouble.result() if trouble.done() else "it ended before the faults did"
            trouble.cancel()
            return Round(state, seconds, told, await ring.audit())


async def soak(kinds: Sequence[str], seeds: Sequence[int]) -> bool:
    """Every kind with every seed; whether all went well."""
    plain = await played(nothing, 0)
    wrong = plain.wrong()
    well = not wrong
    _say(f"undisturbed: {plain.line(wrong)}")
    for seed in seeds:
        for kind in kinds:
            one = await played(TORMENTS[kind], seed)
            wrong = one.wrong() + ([] if kind in COSTS_SEGMENTS else one.differs(plain.audit))
            well = well and not wrong
            _say(f"{kind}, seed {seed}: {one.line(wrong)}")
    return well


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    """Soak as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=__doc__)
    parser.add_argument("--kind", choices=[*TORMENTS], action="append", help="may be given repeatedly; default: all")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each kind (default: 3)")
    parser.add_argument("--seed", type=int, default=0, help="the first round's seed (default: 0)")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.rounds)
    return 0 if asyncio.run(soak(options.kind or [*TORMENTS], seeds)) else 1


if __name__ == "__main__":
    sys.exit(main())
