"""Parses the options of a study: arms, seeds, worlds and reward profile. Errors are InvalidStudy."""

from typing import Final

from services.trainer.env.rewards import profiles
from studies.arms import ARMS
from studies.plan import InvalidStudy

MAX_SEEDS: Final = 100


def parse_arms(names: str) -> tuple[str, ...]:
    """Parse a comma-separated list of arms. Duplicates are removed: two equal trials would share a store."""
    chosen = _parts(names)
    if not chosen:
        raise InvalidStudy(f"--arms: name at least one arm; choose from {', '.join(ARMS)}.")
    unknown = [name for name in chosen if name not in ARMS]
    if unknown:
        raise InvalidStudy(f"--arms: unknown arm {', '.join(unknown)}; choose from {', '.join(ARMS)}.")
    return chosen


def parse_worlds(names: str) -> tuple[str, ...]:
    """Parse a comma-separated list of worlds, without duplicates."""
    chosen = _parts(names)
    if not chosen:
        raise InvalidStudy("WORLD: name a world, or several with commas between them, e.g. wild:101,wild:102.")
    return chosen


def parse_seeds(text: str) -> tuple[int, ...]:
    """Parse a number of seeds (`5` means 0 to 4) or a range without its end (`100:110` means 100 to 109)."""
    first, colon, end = text.partition(":")
    try:
        low, high = (int(first), int(end)) if colon else (0, int(first))
    except ValueError as error:
        raise InvalidStudy(f"--seeds {text}: write a number, e.g. 5, or a range, e.g. 100:110.") from error
    if not 0 <= low < high or high - low > MAX_SEEDS:
        raise InvalidStudy(f"--seeds {text}: name 1 to {MAX_SEEDS} seeds, none of them negative.")
    return tuple(range(low, high))


def check_rewards(name: str) -> str:
    """Return the name of a reward profile; InvalidStudy if it is unknown. Call it before the plan is written."""
    if name not in profiles():
        raise InvalidStudy(f"--rewards: unknown profile {name!r}; choose from {', '.join(profiles())}.")
    return name


def _parts(names: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
