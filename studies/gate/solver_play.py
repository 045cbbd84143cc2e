"""Bramble's solver at the buttons of a training environment."""

from collections.abc import Callable

import numpy as np

from bramble.emulator import ACTIONS, BrambleEmulator
from bramble.solver.walker import Walker
from bramble.worlds.model import STEPS, Cell, RoomId, World
from services.trainer.env.game_session import GameSession, StepResult

Observe = Callable[[GameSession, int, StepResult], None]
UNLIMITED = 10**6


class EpisodeEnded(Exception):
    """The episode is over; the solver cannot know that."""


class SessionButtons(BrambleEmulator):
    """The solver's view of a training environment: the solver reads its RAM and presses its buttons."""

    def __init__(self, session: GameSession, observe: Observe | None = None) -> None:
        """Call `observe` after every step."""
        self.session, self.observe = session, observe
        self.pyboy = session.emulator._pyboy  # the solver reads RAM itself, which makes it a check of the environment
        self.frames = self.steps = 0

    def step(self, action: str) -> None:
        """Make one step of the environment; raise EpisodeEnded after the last one."""
        number = ACTIONS.index(action)
        outcome = self.session.step(number)
        self.steps += 1
        if self.observe is not None:
            self.observe(self.session, number, outcome)
        if outcome.report is not None:
            raise EpisodeEnded


class DetourWalker(Walker):
    """A walker that strays before some of its ways: a random walk of up to `MAX_DETOUR` steps."""

    MAX_DETOUR = 40

    def __init__(self, game: BrambleEmulator, world: World, share: float, seed: int) -> None:
        """Stray before this share of the ways."""
        super().__init__(game, world, limit=UNLIMITED)
        self._share, self._rng = share, np.random.default_rng([seed, 1])

    def travel(self, room_id: RoomId, cell: Cell | None = None) -> None:
        """Stray or not, then walk to a room, or to a cell of it."""
        if self._rng.random() < self._share:
            for _ in range(int(self._rng.integers(1, self.MAX_DETOUR // 8))):
                self.press(str(self._rng.choice(list(STEPS))), 8)
        super().travel(room_id, cell)
