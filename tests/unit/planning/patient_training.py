"""Trains until models have answered: how many iterations that takes depends on the load of the machine."""

import time
from collections.abc import Callable
from typing import Final

from services.trainer.driver.session import TrainingSession

PATIENCE_S: Final = 90.0


def iterate_until(session: TrainingSession, condition: Callable[[], bool]) -> None:
    """Iterate at least once, and until the condition holds; fail after a while."""
    deadline = time.monotonic() + PATIENCE_S
    session.iterate()
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S:g} s: {session.model_calls}"
        session.iterate()


def answered_modes(session: TrainingSession) -> set[str]:
    """The modes in which a model has answered in this epoch."""
    return {mode for mode, calls in session.model_calls.items() if calls.outcomes.get("answered")}
