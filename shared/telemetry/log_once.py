"""Reports a persistent problem once, although the check that finds it repeats every second."""

import re
from collections.abc import Callable, Collection, Hashable
from typing import Any, Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

_DURATION: Final = re.compile(r"\d+(\.\d+)? ?(ms|µs|us|ns|s)\b")


class LogOnce(Generic[Key]):
    """Logs the problem of a key when it appears or changes; `clear` allows the same problem to be logged again.

    A problem that differs only in durations is the same: clients of an absent server name how long each attempt took.
    """

    def __init__(self, log: Callable[..., Any], event: str) -> None:
        """`log` is a logger's method, such as `log.warning`; `event` is the constant message of every line."""
        self._log, self._event = log, event
        self._problems: dict[Key, str] = {}

    def report(self, key: Key, error: object, /, **fields: Any) -> bool:
        """Log `error` with `fields`, unless it is the current problem of `key`; return whether it was logged."""
        problem = _DURATION.sub("", str(error))
        if self._problems.get(key) == problem:
            return False
        self._problems[key] = problem
        self._log(self._event, **fields, error=str(error))
        return True

    def clear(self, key: Key) -> None:
        """The problem of `key` has ended."""
        self._problems.pop(key, None)

    def keep_only(self, keys: Collection[Key]) -> None:
        """Forget the problems of all other keys."""
        self._problems = {key: self._problems[key] for key in self._problems if key in keys}

    @property
    def keys(self) -> list[Key]:
        """The keys with a current problem, in the order in which these appeared."""
        return list(self._problems)

    def __len__(self) -> int:
        """Number of keys with a current problem."""
        return len(self._problems)
