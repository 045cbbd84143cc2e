"""Shortens a failing history: removes what the failure does not need (ddmin: Zeller and Hildebrandt 2002)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.faults.simulation.history import SETTLED, Step


def shortest(steps: Sequence[Step], fails: Callable[[Sequence[Step]], bool]) -> list[Step]:
    """A part of `steps` that fails and of which no single step can be removed; `steps` itself must fail."""
    kept, size = list(steps), max(1, len(steps) // 2)
    while True:
        removed = False
        at = 0
        while at < len(kept):
            candidate = kept[:at] + kept[at + size :]
            if fails(candidate):
                kept, removed = candidate, True
            else:
                at += size
        if size == 1 and not removed:
            return _settle(kept, fails)
        size = max(1, size // 2)


def _settle(steps: list[Step], fails: Callable[[Sequence[Step]], bool]) -> list[Step]:
    """Let each step run to its end where the failure allows it: what remains short is what matters."""
    for at, step in enumerate(steps):
        candidate = [*steps[:at], replace(step, cycles=SETTLED), *steps[at + 1 :]]
        if fails(candidate):
            steps = candidate
    return steps
