"""Where two configurations differ, as data: a saved plan and the one that would continue it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

ABSENT: Final = object()


def different_paths(one: Mapping[str, Any], other: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """The paths of the values that differ, e.g. `run.ppo.discount`. A value that only one of them has differs."""
    for name in {**one, **other}:
        path, first, second = f"{within}{name}", one.get(name, ABSENT), other.get(name, ABSENT)
        if isinstance(first, Mapping) and isinstance(second, Mapping):
            yield from different_paths(first, second, f"{path}.")
        elif first != second:
            yield path
