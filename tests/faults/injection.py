"""The faults of one round of a campaign: target, random numbers, and how often each role was hit by which fault."""

import random
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

from tests.faults.fault_proxy import FaultProxy
from tests.faults.live_system import LiveSystem

KILL_INTERVAL_S: Final = (0.5, 4.0)

Proxies = dict[str, FaultProxy]


@dataclass(slots=True)
class Injection:
    """The faults of one round: target, random numbers, how many there were, and the hits of each role, by fault."""

    ring: LiveSystem
    proxies: Proxies
    rng: random.Random
    number: int = 0
    hits: dict[str, Counter[str]] = field(default_factory=dict)

    def hit(self, fault: str, *roles: str, times: int = 1) -> None:
        """Count a fault, once, and for each role that it hits."""
        self.number += times
        for role in roles:
            self.hits.setdefault(role, Counter())[fault] += times

    def of(self, role: str) -> int:
        """Faults that have hit this role."""
        return self.hits.get(role, Counter()).total()


FaultScenario = Callable[[Injection], Coroutine[Any, Any, str]]
