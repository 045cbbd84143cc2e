"""When a driver that failed is started again, and when its run is given up. Pure: time comes in as a number."""

from dataclasses import dataclass

PAUSES_S = (0.0, 5.0, 15.0, 60.0, 120.0)  # before the next start, by failures in a row


@dataclass
class RestartPolicy:
    """Failures of one run's drivers in a row. Progress (an iteration of training) forgives them."""

    limit: int
    failures: int = 0
    not_before: float = 0.0
    progress: tuple[int, int] = (0, 0)
    reason: str = ""
    final: bool = False

    def failed(self, now: float, reason: str, final: bool = False) -> None:
        """A driver ended with an error; `final` says that the next one would end with the same."""
        self.reason, self.final = reason, final
        self.not_before = now + PAUSES_S[min(self.failures, len(PAUSES_S) - 1)]
        self.failures += 1

    def seen(self, epoch: int, steps: int) -> None:
        """A heartbeat told where the driver is."""
        if (epoch, steps) > self.progress:
            self.progress = (epoch, steps)
            self.failures = 0

    @property
    def hopeless(self) -> bool:
        """Whether to give the run up."""
        return self.final or self.failures >= self.limit

    @property
    def verdict(self) -> str:
        """Why the run is given up."""
        return self.reason if self.final else f"{self.failures} drivers in a row failed. {self.reason}"

    def may_start(self, now: float) -> bool:
        """Whether the pause after the last failure is over."""
        return not self.hopeless and now >= self.not_before
