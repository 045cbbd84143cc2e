"""Sticky random options: an action is drawn with a number of steps, instead of a new action for every step.

A new random button each step stays near its place: the hero needs four steps for a tile. Held directions cross rooms.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from services.trainer.executor.outcome import START, WAIT, A, B, GameView
from shared.game.decoding.names import ACTIONS

MAX_PRESS: Final = 3  # steps: by actions/v2 a button is let go within a step, so each step is a press
MOVES: Final = tuple(ACTIONS.index(name) for name in ("up", "down", "left", "right"))


@dataclass(frozen=True, slots=True)
class OptionMix:
    """How often each kind of option is drawn, as weights, and the most steps for which it lasts."""

    move: float = 10.0
    a: float = 4.0
    b: float = 4.0
    start: float = 0.1
    """START opens the menu, where items are put on A and B."""
    wait: float = 0.3
    longest_move: int = 16
    longest_wait: int = 8


TALKING: Final = OptionMix(move=0.5, a=6.0, b=0.5, start=0.0, wait=1.0, longest_move=2, longest_wait=4)
"""While a text is shown: A turns its pages, a direction chooses an answer."""
IN_MENU: Final = OptionMix(move=2.0, a=1.0, b=1.0, start=2.0, wait=2.0, longest_move=1, longest_wait=4)
"""While the menu is open: a direction moves the cursor, A or B takes the item, START closes it."""


class StickyOptions:
    """Draws the actions of one rollout. Equal generator and states give equal actions."""

    def __init__(self, rng: np.random.Generator, mix: OptionMix) -> None:
        self._rng = rng
        self._usual, self._talking, self._in_menu = _Draw(mix), _Draw(TALKING), _Draw(IN_MENU)
        self._action, self._left = WAIT, 0
        self._numbers = self._uniform()

    @property
    def running(self) -> bool:
        """Whether the last option goes on."""
        return self._left > 0

    def next(self, view: GameView) -> int:
        """The action of the next step."""
        state = view.state
        if self._left == 0:
            draw = self._talking if state.dialog is not None else self._in_menu if state.menu else self._usual
            self._action, self._left = draw.option(next(self._numbers), next(self._numbers))
        self._left -= 1
        return self._action

    def _uniform(self) -> Iterator[float]:
        """Numbers from [0, 1), drawn in blocks: one call for each would cost as much as a decoded state."""
        while True:
            yield from self._rng.random(64).tolist()


class _Draw:
    """One mix as a table from a uniform number to an action."""

    def __init__(self, mix: OptionMix) -> None:
        kinds = [(action, mix.move / len(MOVES), mix.longest_move) for action in MOVES]
        kinds += [(A, mix.a, MAX_PRESS), (B, mix.b, MAX_PRESS)]
        kinds += [(START, mix.start, 1), (WAIT, mix.wait, mix.longest_wait)]
        self._kinds = kinds
        total, passed = sum(weight for _, weight, _ in kinds), 0.0
        self._ends: list[float] = []
        for _, weight, _ in kinds:
            passed += weight / total
            self._ends.append(passed)

    def option(self, kind: float, duration: float) -> tuple[int, int]:
        """An action and its number of steps, of two uniform numbers."""
        place = next((place for place, end in enumerate(self._ends) if kind < end), len(self._ends) - 1)
        action, _, longest = self._kinds[place]
        return action, 1 + int(duration * longest)
