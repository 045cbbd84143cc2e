"""Faults at random moments on the whole ring, for a night or before a release: `python -m tests.faults.soak --help`.

Every round is one run of real processes under one kind of fault. All its epochs must be there, every segment that an
account names must be judged, and none twice. One line tells each round; the exit code is 1 if one of them went wrong.
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
from tests.faults.torments import TORMENTS, Torment, Wires, nothing
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

    def line(self, undisturbed: Audit) -> str:
        """What a person wants to know of it.

        It need not be the undisturbed run to the last score: a driver that ends within an epoch writes a checkpoint,
        and whoever goes on from there begins new episodes.
        """
        found, start = self.audit, f"{self.state} after {self.seconds:.0f} s; {self.told}; "
        if wrong := self.wrong():
            return f"{start}WRONG: {'; '.join(wrong)}"
        same = sorted(found.acknowledged) == sorted(undisturbed.acknowledged) and found.scores == undisturbed.scores
        return f"{start}nothing lost, {len(found.scores)} segments, {'the same scores' if same else 'other play'}"


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
    _say(f"undisturbed: {plain.line(plain.audit)}")
    well = not plain.wrong()
    for seed in seeds:
        for kind in kinds:
            one = await played(TORMENTS[kind], seed)
            well = well and not one.wrong()
            _say(f"{kind}, seed {seed}: {one.line(plain.audit)}")
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
