"""The ports of those who act or advise beside the policy."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from shared.game.decoding.state import GameState


class ActionSource(Protocol):
    """Replaces the policy's actions where a planner acts or an option runs; planning.takeover.Takeover is one."""

    actor: int
    """Who chose the last action, as actor.npy stores it."""

    @property
    def decided(self) -> bool:
        """Whether the policy's choice took effect in the last step: the learner learns from such steps alone."""
        ...

    def begin(self) -> None:
        """An episode begins."""
        ...

    def holds(self, state: GameState, image: bytes) -> bool:
        """Whether no step is made now, because an answer is being waited for; asked again until it is False."""
        ...

    def choose(self, state: GameState, image: bytes, action: int) -> int:
        """Return the action to execute instead of the policy's."""
        ...

    def facts(self) -> dict[str, float]:
        """The episode's figures so far."""
        ...


class SuggestionSource(Protocol):
    """Shows suggestions and pays for following them; guidance.guide.Guide is one.

    Steps are numbered from 1 within the episode.
    """

    @property
    def next_step(self) -> int:
        """The next step of which `needs_picture`, `pay` and `look` must hear: most steps have nothing to guide."""
        ...

    def needs_picture(self, step: int) -> bool:
        """Whether this step must be drawn."""
        ...

    @property
    def paid(self) -> float:
        """What the episode was paid so far."""
        ...

    def begin(self, step: int) -> None:
        """An episode begins to be guided, of which `step` steps were made."""
        ...

    def holds(self) -> bool:
        """Whether no step is made now, because a suggestion is being waited for; asked again until it is False."""
        ...

    def pay(self, action: int, episode_return: float, *, by_policy: bool) -> float:
        """The bonus for the action that is about to be made."""
        ...

    def settle(self, episode_return: float) -> float:
        """What the end of the episode takes back, 0 or negative."""
        ...

    def look(self, step: int, state: GameState, image: bytes, picture: Callable[[], np.ndarray]) -> None:
        """This step was made."""
        ...

    def features(self) -> np.ndarray | None:
        """The part of the observation; None without a suggestion."""
        ...

    def facts(self) -> dict[str, float]:
        """The episode's figures so far."""
        ...
