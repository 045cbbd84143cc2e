"""Ways to play in tests: Bramble's solver on the training environment, and simple policies."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import numpy as np

import bramble
from bramble.solver.walker import StuckError, Walker
from bramble.solver.walkthrough import play_with
from bramble.worlds.model import RoomId
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import EpisodeRecorder, GameSession, StepResult
from studies.gate.solver_play import UNLIMITED, EpisodeEnded, Observe, SessionButtons


@contextmanager
def playing(config: EnvConfig, recording: EpisodeRecorder | None = None) -> Iterator[GameSession]:
    """A session at the start of an episode."""
    session = GameSession(config, recording=recording)
    session.reset()
    try:
        yield session
    finally:
        session.close()


def solve(world: str, observe: Observe, **config: object) -> None:
    """Let the solver play `world` to its end; call `observe` on every step."""
    with playing(EnvConfig.of({"world": world, **config})) as session:
        solve_with(session, world, observe)


def solve_with(session: GameSession, world: str, observe: Observe | None) -> None:
    """Like `solve`, with a running session."""
    with suppress(EpisodeEnded):
        play_with(world, Walker(SessionButtons(session, observe), bramble.world(world), limit=UNLIMITED))


def clear_again_and_again(session: GameSession, world: str, room: RoomId, away: RoomId, steps: int) -> list[float]:
    """Beat what is in `room` and pick up what it drops, leave for `away` and come back; the rewards of all steps."""
    rewards: list[float] = []

    def observe(_player: GameSession, _action: int, outcome: StepResult) -> None:
        rewards.append(outcome.reward)
        if len(rewards) == steps:
            raise EpisodeEnded

    walker = Walker(SessionButtons(session, observe), bramble.world(world), limit=UNLIMITED)
    with suppress(EpisodeEnded):
        while True:
            with suppress(StuckError):  # an enemy in the way: the next round
                walker.travel(room)
                walker.clear_room()
                for thing in session.state.pickups:
                    walker.travel(room, (thing.x >> 4, thing.y >> 4))
                walker.travel(away)
            walker.press("nop")
    return rewards


def play(session: GameSession, steps: int, choose: Callable[[int], int], observe: Observe | None = None) -> list[float]:
    """Play `steps` steps over as many episodes as it takes; the rewards of all steps."""
    rewards = []
    for step in range(steps):
        action = choose(step)
        outcome = session.step(action)
        rewards.append(outcome.reward)
        if observe is not None:
            observe(session, action, outcome)
        if outcome.report is not None:
            session.reset()
    return rewards


def at_random(seed: int = 0, actions: int = 7) -> Callable[[int], int]:
    """The random policy, by default without START."""
    rng = np.random.default_rng(seed)
    return lambda step: int(rng.integers(actions))
