"""Finds the fights of a trajectory, and wins each of them in many ways.

No two fights take the same course: enemies move at random, and the trajectory shows one course. A policy that imitates
it alone goes where the trajectory went and ignores where the enemies are. So the options of the exploration strike at
the enemies again and again from where the fight begins, with other seeds, and what wins is imitated instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from services.trainer.domain.backward import longest_episode
from services.trainer.env.game_session import GameSession
from services.trainer.executor.outcome import WALK, A, B, GameView
from services.trainer.exploration.strikes import Strikes
from services.trainer.state_archive.goal import enemy_health_of
from shared.game.decoding.state import RoomKey
from shared.game.emulator.start import StartState

MAX_TRIES: Final = 128  # of each fight
MAX_WINS: Final = 24  # after which it is not tried again
HOPELESS: Final = 32  # tries without a win, after which it is given up
KEPT: Final = 12  # of the wins: those that cost the least health, then the shortest
MAX_DETOUR: Final = 8  # steps in a random direction, where the way to the nearest enemy is blocked


class FightMoment(NamedTuple):
    """A step of a trajectory, before its action: the room, what the enemies there have left, and who has control."""

    room: RoomKey
    enemy_health: int
    control: bool


class Fight(NamedTuple):
    """A stay in a room in which the trajectory hits enemies: its steps from the first enemy to the last hit."""

    room: RoomKey
    begin: int
    end: int
    enemy_health: int
    """What the enemies have left after the last hit."""


@dataclass(frozen=True, slots=True)
class FightRows:
    """What was seen and done in one win of a fight."""

    observations: NDArray[np.float32]
    """(T, D): before each action."""
    actions: NDArray[np.int64]
    """(T,)."""
    lost_health: int
    """Quarter hearts; negative if some were found."""


class WonFight(NamedTuple):
    """A fight, the leg of the trajectory on which it ends, and at least one win of it."""

    fight: Fight
    leg: int
    wins: list[FightRows]


def fights_of(moments: Sequence[FightMoment]) -> list[Fight]:
    """The fights of a trajectory, in their order. Pure."""
    found: list[Fight] = []
    for room, stay in groupby(enumerate(moments), key=lambda numbered: numbered[1].room):
        steps = list(stay)
        left = [moment.enemy_health for _, moment in steps]
        hits = [step for step in range(1, len(left)) if left[step] < left[step - 1]]
        begin = next((step for step, (_, moment) in enumerate(steps) if moment.control and moment.enemy_health), None)
        if hits and begin is not None and begin < hits[-1]:
            found.append(Fight(room, steps[begin][0], steps[hits[-1]][0], left[hits[-1]]))
    return found


def wins_of(session: GameSession, fight: Fight, start: StartState) -> list[FightRows]:
    """The best wins of the fight, each from its start. The same fight has the same wins."""
    session.reseed(fight.begin)
    session.set_starts([replace(start, length=longest_episode(fight.end - fight.begin), ends_with_death=True)])
    won: list[FightRows] = []
    for number in range(MAX_TRIES):
        rows = _try(session, fight, np.random.default_rng([fight.begin, number]))
        if rows is not None:
            won.append(rows)
        if len(won) == MAX_WINS or (not won and number == HOPELESS):
            break
    return sorted(won, key=lambda rows: (rows.lost_health, len(rows.actions)))[:KEPT]


class Striker:
    """Strikes at the nearest enemy with one button, again and again, and takes random detours where it is blocked."""

    def __init__(self, button: int, rng: np.random.Generator) -> None:
        self._button, self._rng = button, rng
        self._strikes = Strikes(button)
        self._detour: list[int] = []

    def next(self, view: GameView) -> int:
        """The action of the next step."""
        if self._detour:
            return self._detour.pop()
        action = self._strikes.next(view)
        if action is None:
            self._strikes = Strikes(self._button)
            steps = int(self._rng.integers(1, MAX_DETOUR + 1))
            self._detour = [WALK[int(self._rng.integers(len(WALK)))]] * steps
            return self._detour.pop()
        return action


def _try(session: GameSession, fight: Fight, rng: np.random.Generator) -> FightRows | None:
    """One try; None unless the enemies are as weak in the end as the trajectory left them."""
    observation, inventory = session.reset(), session.state.inventory
    buttons = [button for button, item in ((A, inventory.equipped_a), (B, inventory.equipped_b)) if item] or [A, B]
    striker, health = Striker(buttons[int(rng.integers(len(buttons)))], rng), inventory.health
    seen: list[NDArray[np.float32]] = []
    actions: list[int] = []
    while session.state.key == fight.room:
        if actions and enemy_health_of(session.state) <= fight.enemy_health:
            rows = np.stack(seen), np.array(actions, np.int64)
            return FightRows(*rows, health - session.state.inventory.health)
        seen.append(observation.copy())
        actions.append(striker.next(GameView(session.state, session.image)))
        result = session.step(actions[-1])
        observation = result.observation
        if result.report is not None:
            return None
    return None
