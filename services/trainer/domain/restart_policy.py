"""Decides when a failed driver is restarted and when its run is given up. Pure: the caller passes the time."""

from dataclasses import dataclass

PAUSES_S = (0.0, 5.0, 15.0, 60.0, 120.0)  # before the next start, by failures in a row


@dataclass
class RestartPolicy:
    """Counts failures of one run's drivers in a row. Progress (training, exploration, evaluation) resets the count."""

    limit: int
    failures: int = 0
    not_before: float = 0.0
    progress: tuple[int, int, float, float] = (0, 0, 0.0, 0.0)
    reason: str = ""
    final: bool = False

    def record_failure(self, now: float, reason: str, final: bool = False) -> None:
        """Count a failed driver; `final` means that any other driver would fail alike. `now` is in seconds."""
        self.reason, self.final = reason, final
        self.not_before = now + PAUSES_S[min(self.failures, len(PAUSES_S) - 1)]
        self.failures += 1

    def record_progress(self, epoch: int, steps: int, explored: float, evaluated: float) -> None:
        """Forgive earlier failures if a heartbeat shows a new furthest position.

        `steps` counts within the epoch; `explored` and `evaluated` are shares, from 0 to 1.
        """
        position = (epoch, steps, explored, evaluated)
        if position > self.progress:
            self.progress = position
            self.failures = 0

    @property
    def exhausted(self) -> bool:
        """Whether the run must be given up."""
        return self.final or self.failures >= self.limit

    @property
    def final_reason(self) -> str:
        """Why the run is given up, for its record."""
        return self.reason if self.final else f"{self.failures} drivers in a row failed. {self.reason}"

    def may_start(self, now: float) -> bool:
        """Whether the pause after the last failure is over."""
        return not self.exhausted and now >= self.not_before
