"""An option that walks up to the nearest enemy and presses a button at it, until none is left or the way is blocked."""

from typing import Final, Literal

import numpy as np

from services.trainer.executor.outcome import WAIT, WALK, A, B, GameView, Outcome
from shared.game.decoding.objects import USUAL_HALF, GameObject
from shared.game.decoding.state import Inventory

MAX_STEPS: Final = 40  # steps
ALIGNED: Final = 3  # pixels that an enemy's edge may be off the line; a sword is about as wide
REACH: Final = 18  # pixels to the edge of an enemy ahead
PAUSE: Final = 2  # steps after a press: a swing takes 12 frames
BLOCKED: Final = 3  # steps without movement until the way counts as blocked
MAX_DETOUR: Final = 8  # steps in a random direction, where the way to the nearest enemy is blocked


def item_buttons(inventory: Inventory) -> list[int]:
    """The buttons that hold an item; both if none does, or if the game does not say."""
    return [button for button, item in ((A, inventory.equipped_a), (B, inventory.equipped_b)) if item] or [A, B]


class Strikes:
    """Strikes at enemies with one button."""

    def __init__(self, button: int, sized: bool = False) -> None:
        """`sized`: the larger the enemy, the farther away it strikes; else all enemies count as equally large."""
        self._button, self._sized, self._left = button, sized, MAX_STEPS
        self._pause = 0
        self._last, self._still = (-1, -1), 0
        self.outcome: Outcome = "unknown"

    def next(self, view: GameView) -> int | None:
        """The next action; None when it has ended."""
        state = view.state
        self._left -= 1
        if not state.enemies or not state.control or self._left < 0:
            self.outcome = "timeout" if self._left < 0 else "stuck" if state.enemies else "done"
            return None
        if self._pause:
            self._pause -= 1
            return WAIT
        here = state.x, state.y
        dx, dy, half = min((self._way(here, one) for one in state.enemies), key=_far)
        near = max(abs(dx), abs(dy)) < REACH + half
        if near and min(abs(dx), abs(dy)) < ALIGNED + half:
            return self._hit(dx, dy, state.facing)
        self._still = self._still + 1 if here == self._last else 0
        self._last = here
        if self._still >= BLOCKED:
            self.outcome = "stuck"
            return None
        return WALK[_onto_line(dx, dy) if near else _along(dx, dy)]

    def _way(self, here: tuple[int, int], enemy: GameObject) -> tuple[int, int, int]:
        """Pixels to an enemy's middle in x and in y, and from there to its nearest edge."""
        half = min(enemy.half_width, enemy.half_height) if self._sized else USUAL_HALF
        return enemy.x - here[0], enemy.y - here[1], half

    def _hit(self, dx: int, dy: int, facing: int) -> int:
        """Turn to an enemy in reach, or press the button."""
        ahead = _along(dx, dy)
        if ahead != facing:
            return WALK[ahead]
        self._pause, self._still = PAUSE, 0
        return self._button


class Striker:
    """Strikes at the nearest enemy with one button, again and again, and takes random detours where it is blocked."""

    def __init__(self, button: int, rng: np.random.Generator, sized: bool = False) -> None:
        self._button, self._rng, self._sized = button, rng, sized
        self._strikes = Strikes(button, sized)
        self._detour: list[int] = []
        self.strikes: Literal["begun", "running"] | None = None
        """What the last action belongs to: a strike that began with it or before it; None: a detour."""

    def next(self, view: GameView) -> int:
        """The action of the next step."""
        action = None if self._detour else self._strikes.next(view)
        if action is None:
            return self._walk()
        self.strikes = "begun" if self.strikes is None else "running"  # a detour lies between two strikes
        return action

    def _walk(self) -> int:
        """The next step of a detour."""
        if not self._detour:
            self._strikes = Strikes(self._button, self._sized)
            steps = int(self._rng.integers(1, MAX_DETOUR + 1))
            self._detour = [WALK[int(self._rng.integers(len(WALK)))]] * steps
        self.strikes = None
        return self._detour.pop()


def _far(way: tuple[int, int, int]) -> int:
    return abs(way[0]) + abs(way[1])


def _along(dx: int, dy: int) -> int:
    """The direction of the longer way."""
    if abs(dx) > abs(dy):
        return 1 if dx > 0 else 3
    return 2 if dy > 0 else 0


def _onto_line(dx: int, dy: int) -> int:
    """The direction of the shorter way: it leads onto the line of an enemy in reach."""
    return _along(dx, 0) if abs(dx) < abs(dy) else _along(0, dy)
