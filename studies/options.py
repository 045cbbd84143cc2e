"""Parses the options of a study: arms, seeds, worlds and reward profile. Errors are InvalidStudy."""

from typing import Final

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
    """Parse a number of seeds (`5` means 0 to 4), or ranges without their ends (`100:110`, `100:102,105:110`)."""
    ranges = [_range(f"0:{text}" if text.isdecimal() else part, text) for part in text.split(",")]
    seeds = {seed for one in ranges for seed in one}
    if not all(ranges) or min(seeds) < 0 or len(seeds) > MAX_SEEDS:
        raise InvalidStudy(f"--seeds {text}: name 1 to {MAX_SEEDS} seeds, none of them negative.")
    return tuple(sorted(seeds))


def _range(part: str, text: str) -> range:
    """The seeds of one range; of at most one more than a study may have, so that no number fills the memory."""
    low, _, end = part.partition(":")
    try:
        first, last = int(low), int(end)
    except ValueError as error:
        said = "write a number, e.g. 5, or ranges, e.g. 100:110 or 100:102,105:110."
        raise InvalidStudy(f"--seeds {text}: {said}") from error
    return range(first, min(last, first + MAX_SEEDS + 1))


def _parts(names: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
