"""How hard a world is: progress of random play, compared with the walk-through."""

import random
from dataclasses import dataclass

from bramble import catalog
from bramble.emulator import BrambleEmulator
from bramble.solver.walkthrough import solve
from bramble.worlds.milestones import reached

ACTIONS = ("nop", "up", "down", "left", "right", "a", "b")
"""Without START: the menu would only slow random play down."""


@dataclass(frozen=True, slots=True)
class RandomRun:
    """Rooms visited and milestones reached by random play."""

    seed: int
    rooms: int
    milestones: int


@dataclass(frozen=True, slots=True)
class DifficultyStudy:
    """Figures of one world."""

    world: str
    rooms: int
    milestones: int
    solver_steps: int
    random_steps: int
    runs: tuple[RandomRun, ...]


def random_run(name: str, seed: int, steps: int) -> RandomRun:
    """Press one random button per step from the start of the game."""
    world = catalog.world(name)
    rng = random.Random(seed)  # noqa: S311
    rooms = set()
    open_milestones = list(world.milestones)
    with BrambleEmulator(catalog.build(name, seed=seed + 1)) as game:
        for _ in range(steps):
            game.step(rng.choice(ACTIONS))
            rooms.add((game.value("active_group"), game.value("active_room")))
            open_milestones = [m for m in open_milestones if not reached(m, game.read)]
    return RandomRun(seed, len(rooms), len(world.milestones) - len(open_milestones))


def study(name: str, steps: int = 10_000, seeds: int = 5) -> DifficultyStudy:
    """Run the walk-through of a world and play it at random."""
    world = catalog.world(name)
    runs = tuple(random_run(name, seed, steps) for seed in range(seeds))
    return DifficultyStudy(name, len(world.rooms), len(world.milestones), solve(name).steps, steps, runs)


def report(found: DifficultyStudy) -> str:
    """The study as text."""
    lines = [
        f"{found.world}: {found.rooms} rooms, {found.milestones} milestones",
        f"walk-through: all milestones in {found.solver_steps} steps",
        f"random buttons, {found.random_steps} steps:",
        "  seed  rooms  milestones",
    ]
    lines += [f"  {run.seed:4d}  {run.rooms:5d}  {run.milestones:10d}" for run in found.runs]
    return "\n".join(lines)
