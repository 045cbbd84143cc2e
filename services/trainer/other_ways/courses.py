"""Leads the hero somewhere in a session, and notes what was seen and done."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from services.trainer.env.game_session import GameSession
from services.trainer.executor.outcome import GameView, StepChooser
from services.trainer.other_ways.leg_passes import LegPass
from services.trainer.other_ways.room_ways import RoomPlace, Stop, Ways, way_back
from services.trainer.state_archive.cell import lasting
from shared.game.emulator.start import StartState
from shared.game.observation.episode_memory import EpisodeMemory


class WalkedWay(NamedTuple):
    """What was seen and done until a walker ended."""

    seen: list[NDArray[np.float32]]
    actions: list[int]
    observation: NDArray[np.float32]
    """After the last action."""

    def then(self, other: "WalkedWay | None") -> "WalkedWay | None":
        """This way and the one after it; None if that one led nowhere."""
        if other is None:
            return None
        return WalkedWay([*self.seen, *other.seen], [*self.actions, *other.actions], other.observation)

    def as_pass(self, leg: int, *, back: bool = False) -> LegPass:
        """The way as rows to imitate, on this leg."""
        return LegPass(leg, np.stack(self.seen), np.array(self.actions, np.int64), back)


def walk(session: GameSession, walker: StepChooser, observation: NDArray[np.float32]) -> WalkedWay | None:
    """Let the walker lead from where this was observed until it ends; None if the episode ends before."""
    seen: list[NDArray[np.float32]] = []
    actions: list[int] = []
    observation = observation.copy()
    while True:
        action = walker.next(GameView(session.state, session.image))
        if action is None:
            return WalkedWay(seen, actions, observation)
        seen.append(observation)
        actions.append(action)
        result = session.step(action)
        observation = result.observation.copy()
        if result.report is not None:
            return None


def lead_back(
    session: GameSession,
    observation: NDArray[np.float32],
    stop: Stop,
    ways: Ways,
    before: tuple[int, ...],
    near: int | None = None,
) -> WalkedWay | None:
    """Lead the hero back to a stop from where this was observed, as `way_back` does.

    None if he does not arrive, makes no step, or has other lasting counters than `before`.
    """
    here = RoomPlace.of(GameView(session.state, session.image))
    walker = way_back(here, stop.place, stop.entry, ways, near=near)
    way = walk(session, walker, observation)
    if way is None or not way.actions or not walker.arrived or lasting(session.counters.values) != before:
        return None
    return way


def present_state(session: GameSession, name: str) -> StartState:
    """The present state of a session, to continue the episode from."""
    memory = EpisodeMemory.of(session.trace, session.counters).to_bytes()
    return StartState(name, session.emulator.save(), memory)
