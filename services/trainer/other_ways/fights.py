"""Finds the fights of a trajectory, and wins each of them in many ways.

No two fights take the same course: enemies move at random, and the trajectory shows one course. A policy that imitates
it alone goes where the trajectory went and ignores where the enemies are. So the options of the exploration strike at
the enemies again and again from where the fight begins, with other seeds, and what wins is imitated too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from services.trainer.domain.backward import longest_episode
from services.trainer.env.game_session import MAX_SEED, GameSession
from services.trainer.executor.outcome import GameView
from services.trainer.options.option_sets import strike_choices, strikes_by_size
from services.trainer.options.strikes import Striker, item_buttons
from services.trainer.other_ways.courses import WalkedWay
from services.trainer.other_ways.leg_passes import LegPass
from services.trainer.state_archive.cell import may_restart
from services.trainer.state_archive.goal import enemy_health_of
from shared.game.decoding.state import GameState, RoomKey
from shared.game.emulator.start import StartState

MAX_TRIES: Final = 128  # of each fight
MAX_WINS: Final = 24  # after which it is not tried again
HOPELESS: Final = 32  # tries without a win, after which it is given up
KEPT: Final = 12  # of the wins: those that cost the least health, then the shortest


class FightMoment(NamedTuple):
    """A step of a trajectory, before its action: the room, what the enemies there have left, and who has control."""

    room: RoomKey
    enemy_health: int
    control: bool

    @classmethod
    def of(cls, state: GameState) -> Self:
        """The moment of this state."""
        return cls(state.key, enemy_health_of(state), may_restart(state))


class Fight(NamedTuple):
    """A stay in a room in which the trajectory hits enemies: its steps from the first enemy to the last hit."""

    room: RoomKey
    begin: int
    end: int
    enemy_health: int
    """What the enemies have left after the last hit."""


class FightWin(NamedTuple):
    """One win of a fight: what it cost, and what was seen and done, as a pass of the leg on which the fight ends."""

    lost_health: int
    """Quarter hearts; negative if some were found."""
    course: LegPass


class WonFight(NamedTuple):
    """A fight, and at least one win of it."""

    fight: Fight
    wins: list[FightWin]


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


def wins_of(session: GameSession, fight: Fight, leg: int, start: StartState) -> list[FightWin]:
    """The best wins of the fight, which ends on this leg, each from its start. The same fight has the same wins."""
    won: list[FightWin] = []
    for number, win in enumerate(tries_of(session, fight, leg, start), start=1):
        if win is not None:
            won.append(win)
        if len(won) == MAX_WINS or (not won and number == HOPELESS):
            break
    return sorted(won, key=lambda win: (win.lost_health, len(win.course.actions)))[:KEPT]


def tries_of(session: GameSession, fight: Fight, leg: int, start: StartState) -> Iterator[FightWin | None]:
    """MAX_TRIES tries of the fight, always the same; None for one that is not won."""
    session.reseed(fight.begin)
    begin = replace(start, length=longest_episode(fight.end - fight.begin), ends_with_death=True)
    session.set_starts([begin])
    for number in range(MAX_TRIES):
        yield _try(session, fight, leg, begin, np.random.default_rng([fight.begin, number]))


def _try(session: GameSession, fight: Fight, leg: int, start: StartState, rng: np.random.Generator) -> FightWin | None:
    """One try; None unless the enemies are as weak in the end as the trajectory left them."""
    observation = session.reset()
    if session.state.key != fight.room:  # a fight often begins at a door, through which the opening moves lead
        observation = session.begin(start, int(rng.integers(1, MAX_SEED + 1)))
    health = session.state.inventory.health
    won = beat_enemies(session, observation, fight.room, fight.enemy_health, rng)
    return None if won is None else FightWin(health - session.state.inventory.health, won.as_pass(leg))


def beat_enemies(
    session: GameSession, observation: NDArray[np.float32], room: RoomKey, left: int, rng: np.random.Generator
) -> WalkedWay | None:
    """Strike at the enemies of this room until they have no more health left than this.

    None if the hero is in another room or leaves this one, or if the episode ends first. Where the policy can choose to
    strike, that choice counts, not the actions of the strike.
    """
    strikes = strike_choices(session.config.options)
    buttons = item_buttons(session.state.inventory)
    button = buttons[int(rng.integers(len(buttons)))]
    striker = Striker(button, rng, strikes_by_size(session.config.options))
    seen: list[NDArray[np.float32]] = []
    choices: list[int] = []
    while session.state.key == room:
        if choices and enemy_health_of(session.state) <= left:
            return WalkedWay(seen, choices, observation.copy())
        action = striker.next(GameView(session.state, session.image))
        if not strikes or striker.strikes != "running":
            seen.append(observation.copy())
            choices.append(strikes[button] if strikes and striker.strikes else action)
        result = session.step(action)
        observation = result.observation
        if result.report is not None:
            return None
    return None
