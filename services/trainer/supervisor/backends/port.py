"""The port behind which drivers run. A backend starts drivers and reports their status; it decides nothing.

It ends no single driver: a driver reads in the store that its run is stopped.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from shared.contracts.ids import RunId

ProcessState = Literal["running", "ended", "failed"]


@dataclass(frozen=True, slots=True)
class DriverLaunch:
    """One driver to start. `former` names a driver of the same run that is known to have ended."""

    run: RunId
    name: str
    former: str | None = None


@dataclass(frozen=True, slots=True)
class DriverStatus:
    """The state of a driver. `reason` is one sentence about a failure; `final`: any other driver would fail alike."""

    state: ProcessState
    reason: str | None = None
    final: bool = False


class Backend(Protocol):
    """Starts and watches driver processes.

    Raises Transient while the backend is unreachable, and Permanent when it refuses a driver.
    """

    async def start(self, launch: DriverLaunch) -> None:
        """Start the driver. Starting a name that already runs is a no-op."""
        ...

    async def status(self, name: str) -> DriverStatus:
        """Return the state of a driver; an unknown driver counts as ended."""
        ...

    async def close(self) -> None:
        """Ask every driver of this service to end, and wait for them where they end with the service."""
        ...
