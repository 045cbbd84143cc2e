"""What a policy with options chooses from, by version: the eight actions, then the options."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from services.trainer.executor.outcome import A, B, GameView, Outcome, StepChooser
from services.trainer.options.choices import CHOICES
from services.trainer.options.strikes import Strikes
from shared.contracts.run import OptionsName
from shared.game.decoding.names import ACTIONS


class RunningOption(StepChooser, Protocol):
    """An option being carried out."""

    @property
    def outcome(self) -> Outcome:
        """How it ended."""
        ...


class OptionChoice(Protocol):
    """One option that can be chosen."""

    @property
    def name(self) -> str:
        """Its name, which no other choice has."""
        ...

    def begin(self, view: GameView) -> RunningOption | None:
        """Begin it; None where it is impossible."""
        ...


@dataclass(frozen=True, slots=True)
class StrikeChoice:
    """Strike at the nearest enemy with one button."""

    name: str
    button: int
    sized: bool = False
    """Whether its reach is counted from the edge of the enemy's hit box."""

    def begin(self, view: GameView) -> Strikes | None:
        """Begin it; None without an enemy, or without control."""
        return Strikes(self.button, self.sized) if view.state.enemies and view.state.control else None


OPTIONS: Final[Mapping[OptionsName, tuple[OptionChoice, ...]]] = {
    "none": (),
    "options/v1": CHOICES,
    "strike/v1": (StrikeChoice("strike with A", A), StrikeChoice("strike with B", B)),
    "strike/v2": (StrikeChoice("strike with A", A, sized=True), StrikeChoice("strike with B", B, sized=True)),
}
"""The options of each version, in the order of their numbers. A changed order or number is another version."""


def choice_names(options: OptionsName) -> tuple[str, ...]:
    """What each output of a policy with these options means."""
    return (*ACTIONS, *(option.name for option in OPTIONS[options]))


def strike_choices(options: OptionsName) -> dict[int, int]:
    """The choice that strikes with each button; empty if these options do not strike."""
    numbered = enumerate(OPTIONS[options], len(ACTIONS))
    return {option.button: number for number, option in numbered if isinstance(option, StrikeChoice)}


def strikes_by_size(options: OptionsName) -> bool:
    """Whether the strikes of these options count their reach from the edge of the enemy's hit box."""
    return any(option.sized for option in OPTIONS[options] if isinstance(option, StrikeChoice))
