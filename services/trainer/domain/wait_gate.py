"""Whether an environment may stand still for a model's answer. A pure state machine: the caller passes the time in.

A wait that ends without an answer closes the gate, each time for twice as long. So an absent or slow model costs a few
waits, and not a share of the training.
"""

from dataclasses import dataclass
from typing import Final

FIRST_PAUSE_S: Final = 60.0  # shorter, and waits for an absent model take a share of the time that can be measured
MAX_PAUSE_S: Final = 3_600.0  # longer, and a model that is back goes unused for hours


@dataclass(slots=True)
class WaitGate:
    """One gate per process that plays. `now` is seconds of any monotonic clock."""

    _pause_s: float = 0.0
    _closed_until: float = 0.0

    def is_open(self, now: float) -> bool:
        """Whether an environment may wait for the answer to a question asked now."""
        return self._pause_s == 0.0 or now >= self._closed_until

    def record_late(self, now: float) -> None:
        """A wait ended without an answer."""
        self._pause_s = min(MAX_PAUSE_S, 2 * self._pause_s) if self._pause_s else FIRST_PAUSE_S
        self._closed_until = now + self._pause_s

    def record_in_time(self) -> None:
        """An answer came within the time that an environment would have waited: the model is fast enough again."""
        self._pause_s = 0.0
