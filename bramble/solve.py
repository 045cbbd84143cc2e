"""The walk-through of each world, by buttons alone, with a check after each milestone.

It is the test of the RAM map (a wrong address ends the walk), the source of demonstrations, and the maker of curriculum
states.
"""

from collections.abc import Callable
from dataclasses import dataclass

import bramble
from bramble.follow import follow
from bramble.game import Game
from bramble.milestones import reached
from bramble.model import Place, World
from bramble.walk import Player, StuckError

Routine = Callable[[Player], None]


@dataclass(frozen=True, slots=True)
class Walk:
    """What a walk-through did: its actions (indices of ACTIONS) and the step of each milestone."""

    world: str
    actions: tuple[int, ...]
    milestones: dict[str, int]

    @property
    def steps(self) -> int:
        """Number of steps of four frames."""
        return len(self.actions)


class _Judge:
    """Notes at which step each milestone is reached."""

    def __init__(self, world: World) -> None:
        self.open = list(world.milestones)
        self.steps: dict[str, int] = {}

    def __call__(self, game: Game) -> None:
        for milestone in [m for m in self.open if reached(m, game.read)]:
            self.steps[milestone.name] = game.steps
            self.open.remove(milestone)


def _garden(player: Player) -> None:
    player.talk(Place(0, 0x10), (4, 5))
    player.travel(Place(0, 0x02), (7, 4))
    player.travel(Place(0, 0x01), (2, 3))
    player.settle()


def _vale_outdoors(player: Player) -> None:
    player.talk(Place(0, 0x31), (6, 2))
    player.talk(Place(3, 0x08), (5, 2))
    player.travel(Place(0, 0x22), (2, 3))
    player.travel(Place(0, 0x23), (1, 6))
    player.talk(Place(0, 0x31), (6, 2))
    player.talk(Place(0, 0x33), (3, 2))
    player.talk(Place(0, 0x13), (4, 3))
    player.talk(Place(0, 0x11), (3, 2))
    player.travel(Place(4, 0x71))


def _vale_mill(player: Player) -> None:
    for block in ((4, 3), (5, 3), (6, 3)):
        player.push(block, "right")
    player.push((7, 3), "down")
    player.travel(Place(4, 0x61))
    player.clear_room()
    player.talk(Place(4, 0x61), (7, 1))
    player.open_door("up", (4, 0))
    player.travel(Place(4, 0x42), (2, 1))
    player.travel(Place(4, 0x42), (7, 6))
    player.talk(Place(4, 0x42), (7, 2))
    player.travel(Place(4, 0x51), (8, 3))
    player.open_door("right", (9, 3))
    player.travel(Place(4, 0x52), (1, 3))
    player.clear_room()
    player.travel(Place(4, 0x53), (5, 3))
    player.settle()


def _vale(player: Player) -> None:
    _vale_outdoors(player)
    _vale_mill(player)


def _by_proof(player: Player) -> None:
    """Worlds by seed have no walk-through of their own: their proof is one."""
    follow(player, player.world)


ROUTINES: dict[str, Routine] = {"garden": _garden, "vale": _vale}


def play(name: str, game: Game, world: World) -> None:
    """Play a running game of a world to its end. Raise StuckError where the player cannot go on."""
    ROUTINES.get(name, _by_proof)(Player(game, world))


def solve(name: str, seed: int = 0, observe: Callable[[Game], None] | None = None) -> Walk:
    """Play a world to its end. Raise StuckError when it is not reached, or a milestone was missed."""
    world = bramble.world(name)
    with Game(bramble.build(name, seed=seed)) as game:
        judge = _Judge(world)
        game.after_step.append(judge)
        if observe is not None:
            game.after_step.append(observe)
        play(name, game, world)
        if judge.open:
            raise StuckError(f"{name}: not reached: {', '.join(m.name for m in judge.open)}")
        return Walk(name, tuple(game.actions), judge.steps)
