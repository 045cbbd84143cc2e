"""Rewards as named terms over two consecutive states. A profile gives each term its weight; 0 turns it off.

Every term begins with the state of the reset, so possessions at the start are never paid. A term pays at most once for
the same thing in an episode: nothing can be farmed by repetition. `movement` is the exception, for comparisons alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from services.trainer.env.detectors import Detectors
from shared.game.decoding.names import ACTIONS, SUPPLIES
from shared.game.decoding.state import GameState, RoomKey
from shared.game.observation.trace import EpisodeTrace

QUARTERS: Final = 4
START: Final = ACTIONS.index("start")
KILLS_PAID: Final = 4  # per room and episode; with more, a room of enemies is worth more than the way on
RUPEES_PAID: Final = 20  # per room and episode; with more, clearing two rooms in turn pays without end


@dataclass(slots=True)
class Transition:
    """One step as the terms see it. It is overwritten on every step: a term must not keep it."""

    previous: GameState
    state: GameState
    action: int
    trace: EpisodeTrace
    detectors: Detectors


When = Literal["always", "step", "idle", "menu", "owned", "seen", "text", "solved", "died"]


class Term(Protocol):
    """One reward term of one environment. `when` selects the steps on which it is called, because most change nothing.

    always: never called, it pays the same on every step; step: every step; idle: stuck or in a loop; menu: a menu is
    open; owned: the inventory changed; seen: a new tile or room; text: a text is shown; solved: a puzzle advanced;
    died: the hero died.
    """

    when: When

    def begin(self, state: GameState) -> None:
        """Begin an episode: store what the hero has at its start."""
        ...

    def __call__(self, step: Transition) -> float:
        """The value of this step before the weight; usually a count."""
        ...


class StatelessTerm:
    """A term that needs the transition alone."""

    def __init__(self, worth: Callable[[Transition], float], when: When = "step") -> None:
        self._worth, self.when = worth, when

    def begin(self, state: GameState) -> None:
        """Nothing to store."""

    def __call__(self, step: Transition) -> float:
        """The value of this step."""
        return self._worth(step)


class ConstantTerm:
    """A term that pays the same on every step."""

    when: When = "always"
    worth = -1.0

    def begin(self, state: GameState) -> None:
        """Nothing to store."""

    def __call__(self, step: Transition) -> float:
        """The value of any step."""
        return self.worth


class RoomRewardCap:
    """Limits what is paid per room and episode to `most`: enemies and grass come back, rewards must not."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._paid: dict[RoomKey, int] = {}

    def pay(self, room: RoomKey, gain: int) -> float:
        """Pay the gain, up to the rest of the room's limit."""
        paid = self._paid.get(room, 0)
        worth = min(gain, self._most - paid)
        self._paid[room] = paid + worth
        return float(worth)


class Rupees:
    """Money gained beyond this episode's maximum: spending and earning it back pays nothing. At most `RUPEES_PAID` in
    each room, because enemies and grass that drop money come back."""

    when: When = "owned"

    def begin(self, state: GameState) -> None:
        """Money held at the start is not paid."""
        self._most = state.inventory.rupees or 0
        self._allowance = RoomRewardCap(RUPEES_PAID)

    def __call__(self, step: Transition) -> float:
        """New rupees within the room's limit."""
        gain = (step.state.inventory.rupees or 0) - self._most
        if gain <= 0:
            return 0.0
        self._most += gain
        return self._allowance.pay(step.state.key, gain)


class Keys:
    """Small keys picked up, of all dungeons together. Keys are finite, and using one costs nothing."""

    when: When = "owned"

    def begin(self, state: GameState) -> None:
        """Keys held at the start are not paid."""
        self._held = sum(state.inventory.small_keys or b"")

    def __call__(self, step: Transition) -> float:
        """New keys."""
        held = sum(step.state.inventory.small_keys or b"")
        gain, self._held = held - self._held, held
        return float(max(gain, 0))


class Treasures:
    """Treasures that the hero did not own before in this episode; money and hearts have terms of their own."""

    when: When = "owned"

    def begin(self, state: GameState) -> None:
        """What is owned at the start is not paid."""
        self._owned: frozenset[int] = SUPPLIES | (state.inventory.treasures or frozenset())

    def __call__(self, step: Transition) -> float:
        """New treasures."""
        own = step.state.inventory
        if own.treasures is None:
            return 0.0
        gain = own.treasures - self._owned
        self._owned |= gain
        return float(len(gain))


class NewMaximum:
    """A number that only its new maximum pays: level of the sword, essences, heart containers."""

    when: When = "owned"

    def __init__(self, value: Callable[[GameState], int]) -> None:
        self._value = value

    def begin(self, state: GameState) -> None:
        """The value at the start is not paid."""
        self._most = self._value(state)

    def __call__(self, step: Transition) -> float:
        """By how much the maximum rose."""
        gain = self._value(step.state) - self._most
        self._most += max(gain, 0)
        return float(max(gain, 0))


class Dialogs:
    """Texts read for the first time in this episode; the same text again pays nothing."""

    when: When = "text"

    def begin(self, state: GameState) -> None:
        """A text already on the screen is not paid."""
        self._read = set() if state.dialog is None else {state.dialog.text}

    def __call__(self, step: Transition) -> float:
        """1 for a new text."""
        dialog = step.state.dialog
        if dialog is None or dialog.text in self._read:
            return 0.0
        self._read.add(dialog.text)
        return 1.0


class Kills:
    """Enemies beaten, at most `KILLS_PAID` in each room, because they come back."""

    when: When = "owned"

    def begin(self, state: GameState) -> None:
        """Earlier kills are not paid."""
        self._kills = state.inventory.kills or 0
        self._allowance = RoomRewardCap(KILLS_PAID)

    def __call__(self, step: Transition) -> float:
        """New kills within the room's limit."""
        kills = step.state.inventory.kills or 0
        gain, self._kills = kills - self._kills, max(kills, self._kills)
        return self._allowance.pay(step.state.key, gain) if gain > 0 else 0.0


class Hearts:
    """Health gained or lost, in hearts; `sign` chooses which. Only losses of this episode pay when healed."""

    when: When = "owned"

    def __init__(self, sign: int) -> None:
        self._sign = sign

    def begin(self, state: GameState) -> None:
        """Only losses of this episode can be healed for a reward."""
        self._lost = 0

    def __call__(self, step: Transition) -> float:
        """Hearts gained (sign 1) or minus the hearts lost (sign -1). A death and the hearts after it pay nothing."""
        if step.detectors.died or step.previous.dying:
            self._lost = 0
            return 0.0
        change = step.state.inventory.health - step.previous.inventory.health
        if change == 0:
            return 0.0
        if change < 0:
            self._lost -= change
            return change / QUARTERS if self._sign < 0 else 0.0
        healed = min(change, self._lost)
        self._lost -= healed
        return healed / QUARTERS if self._sign > 0 else 0.0


class StartPresses:
    """Presses of START. Steps that hold the button are one press. Of the profile `seeds`."""

    when: When = "step"

    def begin(self, state: GameState) -> None:
        """The button is up."""
        self._down = False

    def __call__(self, step: Transition) -> float:
        """-1 for a new press."""
        before, self._down = self._down, step.action == START
        return -float(self._down and not before)


def _moved(step: Transition) -> float:
    """1 if the hero is elsewhere than a step before. It pays for walking to and fro: only `seeds` weighs it."""
    old, new = step.previous, step.state
    return float((old.x, old.y) != (new.x, new.y) or old.key != new.key)


def _essences(state: GameState) -> int:
    return (state.inventory.essences or 0).bit_count()


TERMS: Final[dict[str, Callable[[], Term]]] = {
    "room": lambda: StatelessTerm(lambda step: float(step.trace.new_room), "seen"),
    "tile": lambda: StatelessTerm(lambda step: float(step.trace.new_tile), "seen"),
    "revisit": lambda: StatelessTerm(lambda step: -float(not step.trace.new_tile and not step.state.transition)),
    "health_lost": lambda: Hearts(-1),
    "health_gained": lambda: Hearts(1),
    "rupees": Rupees,
    "key": Keys,
    "treasure": Treasures,
    "sword": lambda: NewMaximum(lambda state: state.inventory.sword or 0),
    "heart_container": lambda: NewMaximum(lambda state: state.inventory.max_health // QUARTERS),
    "essence": lambda: NewMaximum(_essences),
    "dialog": Dialogs,
    "puzzle": lambda: StatelessTerm(lambda step: float(step.detectors.puzzle_gain), "solved"),
    "kill": Kills,
    "death": lambda: StatelessTerm(lambda step: -float(step.detectors.died), "died"),
    "stuck": lambda: StatelessTerm(lambda step: -float(step.detectors.stuck or step.detectors.loop), "idle"),
    "menu": lambda: StatelessTerm(lambda step: -float(bool(step.state.menu)), "menu"),
    "movement": lambda: StatelessTerm(_moved),
    "start_press": StartPresses,
    "position_stuck": lambda: StatelessTerm(lambda step: -float(step.detectors.stuck), "idle"),
    "time": ConstantTerm,
}
