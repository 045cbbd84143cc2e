"""The walk-through of each world with buttons alone, and the step of each milestone.

It tests the RAM map (a wrong address ends the walk) and is the source of demonstrations and curriculum states.
"""

from collections.abc import Callable
from dataclasses import dataclass

from bramble import catalog
from bramble.emulator import BrambleEmulator
from bramble.solver.plan_execution import execute_plan
from bramble.solver.walker import StuckError, Walker
from bramble.worlds.milestones import reached
from bramble.worlds.model import RoomId, World

Routine = Callable[[Walker], None]


@dataclass(frozen=True, slots=True)
class Walkthrough:
    """A finished walk-through: its actions (indices of ACTIONS) and the step of each milestone."""

    world: str
    actions: tuple[int, ...]
    milestones: dict[str, int]

    @property
    def steps(self) -> int:
        """Number of steps of four frames."""
        return len(self.actions)


class _MilestoneLog:
    """Records the step at which each milestone is reached."""

    def __init__(self, world: World) -> None:
        self.open = list(world.milestones)
        self.steps: dict[str, int] = {}

    def __call__(self, game: BrambleEmulator) -> None:
        for milestone in [m for m in self.open if reached(m, game.read)]:
            self.steps[milestone.name] = game.steps
            self.open.remove(milestone)


def _garden(walker: Walker) -> None:
    walker.talk(RoomId(0, 0x10), (4, 5))
    walker.travel(RoomId(0, 0x02), (7, 4))
    walker.travel(RoomId(0, 0x01), (2, 3))
    walker.settle()


def _vale_outdoors(walker: Walker) -> None:
    walker.talk(RoomId(0, 0x31), (6, 2))
    walker.talk(RoomId(3, 0x08), (5, 2))
    walker.travel(RoomId(0, 0x22), (2, 3))
    walker.travel(RoomId(0, 0x23), (1, 6))
    walker.talk(RoomId(0, 0x31), (6, 2))
    walker.talk(RoomId(0, 0x33), (3, 2))
    walker.talk(RoomId(0, 0x13), (4, 3))
    walker.talk(RoomId(0, 0x11), (3, 2))
    walker.travel(RoomId(4, 0x71))


def _vale_mill(walker: Walker) -> None:
    for block in ((4, 3), (5, 3), (6, 3)):
        walker.push(block, "right")
    walker.push((7, 3), "down")
    walker.travel(RoomId(4, 0x61))
    walker.clear_room()
    walker.talk(RoomId(4, 0x61), (7, 1))
    walker.open_door("up", (4, 0))
    walker.travel(RoomId(4, 0x42), (2, 1))
    walker.travel(RoomId(4, 0x42), (7, 6))
    walker.talk(RoomId(4, 0x42), (7, 2))
    walker.travel(RoomId(4, 0x51), (8, 3))
    walker.open_door("right", (9, 3))
    walker.travel(RoomId(4, 0x52), (1, 3))
    walker.clear_room()
    walker.travel(RoomId(4, 0x53), (5, 3))
    walker.settle()


def _vale(walker: Walker) -> None:
    _vale_outdoors(walker)
    _vale_mill(walker)


def _by_plan(walker: Walker) -> None:
    """Worlds without a written walk-through follow the planner's plan."""
    execute_plan(walker, walker.world)


WALKTHROUGHS: dict[str, Routine] = {"garden": _garden, "vale": _vale}


def play(name: str, game: BrambleEmulator, world: World) -> None:
    """Play a running game of a world to its end. Raise StuckError if the walker cannot continue."""
    play_with(name, Walker(game, world))


def play_with(name: str, walker: Walker) -> None:
    """Play to the end of a world with this walker. Raise StuckError if it cannot continue."""
    WALKTHROUGHS.get(name, _by_plan)(walker)


def solve(
    name: str,
    seed: int = 0,
    observe: Callable[[BrambleEmulator], None] | None = None,
    difficulty: str = "normal",
) -> Walkthrough:
    """Play a world to its end. Raise StuckError if a milestone is not reached."""
    world = catalog.world(name)
    with BrambleEmulator(catalog.build(name, difficulty, seed)) as game:
        log = _MilestoneLog(world)
        game.after_step.append(log)
        if observe is not None:
            game.after_step.append(observe)
        play(name, game, world)
        if log.open:
            raise StuckError(f"{name}: milestones not reached: {', '.join(m.name for m in log.open)}")
        return Walkthrough(name, tuple(game.actions), log.steps)
