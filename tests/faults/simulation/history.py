"""A history: the faults and events of one simulation, drawn from a seed, as data that can be shortened and replayed."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

PROCESSES: Final = ("coordinator-a", "coordinator-b", "judge-a", "judge-b", "rewardmodel", "trainer", "driver")
SERVICES: Final = PROCESSES[:-1]
CONSUMERS: Final = ("judge-segments", "rewardmodel-epochs", "coordinator-runs", "trainer-runs")
SECONDS: Final = (0.5, 5.0, 12.0, 40.0, 200.0, 700.0)
STEPS: Final = 30
SETTLED: Final = 2_000  # cycles of the loop: more than any work takes

Kind = str
ARGUMENTS: Final[dict[Kind, tuple[int, Sequence[str | float]]]] = {
    # kind: (weight, what it may apply to)
    "turn": (30, ("",)),  # every service works once
    "work": (30, SERVICES),
    "time": (16, SECONDS),
    "kill": (8, PROCESSES),
    "freeze": (3, SERVICES),
    "thaw": (3, SERVICES),
    "store away": (2, ("",)),
    "store back": (3, ("",)),
    "bus away": (2, ("",)),
    "bus back": (3, ("",)),
    "lose answers": (3, (1.0, 2.0, 3.0)),
    "purge": (1, ("",)),
    "delete consumer": (1, CONSUMERS),
    "repeat event": (3, ("",)),
    "corrupt archive": (1, ("",)),
    "create": (2, ("key-1", "key-2", "key-3")),
    "stop": (2, ("",)),
    "resume": (3, ("",)),
    "delete": (1, ("",)),
}
# Deletion ends the story: most histories go without it. A damaged archive excludes comparison with an undisturbed run.
RARE: Final = {"delete": 0.15, "corrupt archive": 0.2, "stop": 0.5}


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens, and for how many cycles of the loop its consequences run before the next.

    `seed` decides what else is random in it, so that it happens alike in a shortened history.
    """

    kind: Kind
    argument: str | float
    cycles: int
    seed: int

    def __str__(self) -> str:
        argument = f" {self.argument}" if self.argument != "" else ""
        return f"{self.kind}{argument}" + ("" if self.cycles >= SETTLED else f", {self.cycles} cycles")


def draw(seed: int) -> list[Step]:
    """The history of a seed."""
    rng = random.Random(seed)
    kinds = [kind for kind in ARGUMENTS if rng.random() < RARE.get(kind, 1.0)]
    weights = [ARGUMENTS[kind][0] for kind in kinds]
    first = [_step(rng, "create", "key-1"), _step(rng, "create", rng.choice(("key-1", "key-2")))]
    drawn = rng.choices(kinds, weights, k=STEPS)
    return first + [_step(rng, kind, rng.choice(ARGUMENTS[kind][1])) for kind in drawn]


def _step(rng: random.Random, kind: Kind, argument: str | float) -> Step:
    cycles = rng.choice((rng.randrange(12), rng.randrange(60), SETTLED))
    return Step(kind, argument, cycles, rng.getrandbits(32))
