"""Whether an environment may stand still for a model's answer. A pure state machine: the caller passes the time in.

Until a model has answered in time, one environment waits on trial while the others go on. A wait that ends without an
answer closes the gate, each time for twice as long. So an absent or slow model costs a few waits of one environment.
"""

from dataclasses import dataclass
from typing import Final

FIRST_PAUSE_S: Final = 60.0  # shorter, and waits for an absent model take a share of the time that can be measured
MAX_PAUSE_S: Final = 3_600.0  # longer, and a model that is back goes unused for hours
MAX_TRIAL_S: Final = 120.0  # the longest wait of a run: a trial whose episode ended must not block others for longer


@dataclass(slots=True)
class WaitGate:
    """One gate per process that plays. `now` is seconds of any monotonic clock."""

    trusted: bool = False
    """Whether the last verdict was an answer in time: then every environment may wait."""
    _pause_s: float = 0.0
    _closed_until: float = float("-inf")
    _trial_until: float = float("-inf")

    def is_open(self, now: float) -> bool:
        """Whether an environment that asks now may wait."""
        return self.trusted or now >= max(self._closed_until, self._trial_until)

    def admit(self, now: float) -> bool:
        """Whether this environment may wait. Before the model is trusted, it is then the only one."""
        admitted = self.is_open(now)
        if admitted and not self.trusted:
            self._trial_until = now + MAX_TRIAL_S
        return admitted

    def record_late(self, now: float) -> None:
        """A wait ended without an answer. Several that end together count once."""
        self.trusted, self._trial_until = False, float("-inf")
        if now < self._closed_until:
            return
        self._pause_s = min(MAX_PAUSE_S, 2 * self._pause_s) if self._pause_s else FIRST_PAUSE_S
        self._closed_until = now + self._pause_s

    def record_in_time(self) -> None:
        """An answer came within the time that an environment would have waited: the model is fast enough."""
        self.trusted, self._pause_s = True, 0.0
        self._closed_until = self._trial_until = float("-inf")

    def end_trial(self) -> None:
        """The wait ended without a verdict: the model refused, or is away, which costs no time."""
        self._trial_until = float("-inf")
