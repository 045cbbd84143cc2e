"""An option that walks up to the nearest enemy and presses a button at it, until none is left or the way is blocked."""

from typing import Final

from services.trainer.executor.outcome import WAIT, WALK, GameView

MAX_STEPS: Final = 40  # steps
ALIGNED: Final = 9  # pixels off the line to an enemy; a sword is about as wide
REACH: Final = 24  # pixels to an enemy ahead
PAUSE: Final = 2  # steps after a press: a swing takes 12 frames
BLOCKED: Final = 3  # steps without movement until the way counts as blocked


class Strikes:
    """Strikes at enemies with one button."""

    def __init__(self, button: int) -> None:
        self._button, self._left = button, MAX_STEPS
        self._pause = 0
        self._last, self._still = (-1, -1), 0

    def next(self, view: GameView) -> int | None:
        """The next action; None when it has ended."""
        state = view.state
        self._left -= 1
        if not state.enemies or not state.control or self._left < 0:
            return None
        if self._pause:
            self._pause -= 1
            return WAIT
        here = state.x, state.y
        dx, dy = min(((one.x - here[0], one.y - here[1]) for one in state.enemies), key=_far)
        if min(abs(dx), abs(dy)) < ALIGNED and max(abs(dx), abs(dy)) < REACH:
            return self._hit(dx, dy, state.facing)
        self._still = self._still + 1 if here == self._last else 0
        self._last = here
        return None if self._still >= BLOCKED else WALK[_towards(dx, dy)]

    def _hit(self, dx: int, dy: int, facing: int) -> int:
        """Turn to an enemy in reach, or press the button."""
        ahead = _along(dx, dy)
        if ahead != facing:
            return WALK[ahead]
        self._pause, self._still = PAUSE, 0
        return self._button


def _far(distance: tuple[int, int]) -> int:
    return abs(distance[0]) + abs(distance[1])


def _along(dx: int, dy: int) -> int:
    """The direction of the longer way."""
    if abs(dx) > abs(dy):
        return 1 if dx > 0 else 3
    return 2 if dy > 0 else 0


def _towards(dx: int, dy: int) -> int:
    """The direction to walk: within reach onto the enemy's line, farther away along the longer way."""
    if max(abs(dx), abs(dy)) < REACH:
        return _along(dx, 0) if abs(dx) < abs(dy) else _along(0, dy)
    return _along(dx, dy)
