"""Which steps of an episode are asked about: drawn from the episode's own random numbers.

Each step is asked about with the same probability, so the distances between asked steps are geometric: they are drawn,
because a draw in every step costs more. Answers change no draw, so the same episode asks about the same steps however
fast the models are.
"""

import sys
from typing import Final, Literal, NamedTuple

import numpy as np

SuggestionKind = Literal["text", "vision"]
STREAM: Final = 0x677569  # keeps these numbers apart from those of the game's own seed


class DrawnStep(NamedTuple):
    """The next step that is asked about."""

    distance: int
    """In steps, at least 1."""
    kind: SuggestionKind


class AskingSchedule:
    """The draws of one episode."""

    def __init__(self, seed: tuple[int, ...], text_share: float, vision_share: float) -> None:
        """`seed` identifies the episode: run, runner, environment, number. The shares are of all steps."""
        self._rng = np.random.default_rng([*seed, STREAM])
        self._text, self._any = text_share, text_share + vision_share

    def next(self) -> DrawnStep:
        """The next step that is asked about."""
        if self._any == 0:
            return DrawnStep(sys.maxsize, "text")
        distance = int(self._rng.geometric(min(1.0, self._any)))
        return DrawnStep(distance, "text" if self._rng.random() * self._any < self._text else "vision")
