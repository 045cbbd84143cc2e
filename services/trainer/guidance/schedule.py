"""Which steps of an episode are asked about: drawn from the episode's own random numbers, a draw a step.

Answers change no draw, so the same episode asks about the same steps however fast the models are.
"""

from typing import Final, Literal

import numpy as np

SuggestionKind = Literal["text", "vision"]
STREAM: Final = 0x677569  # keeps these numbers apart from those of the game's own seed
BLOCK: Final = 1_024  # numbers drawn together; one call a step would cost more than the comparison


class AskingSchedule:
    """The draws of one episode."""

    def __init__(self, seed: tuple[int, ...], text_share: float, vision_share: float) -> None:
        """`seed` identifies the episode: run, runner, environment, number."""
        self._rng = np.random.default_rng([*seed, STREAM])
        self._text, self._any = text_share, text_share + vision_share
        self._drawn: list[float] = []

    def next(self) -> SuggestionKind | None:
        """What the next step's state is asked about; None for most."""
        if not self._drawn:
            self._drawn = self._rng.random(BLOCK).tolist()
        number = self._drawn.pop()
        if number >= self._any:
            return None
        return "text" if number < self._text else "vision"
