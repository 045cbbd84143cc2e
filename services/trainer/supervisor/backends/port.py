"""The port behind which drivers run. A backend starts, asks and closes; it decides nothing.

It ends no single driver: a driver learns from the store that its run is stopped.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

from shared.contracts.ids import RunId

DriverLife = Literal["running", "ended", "failed"]


@dataclass(frozen=True, slots=True)
class DriverLaunch:
    """One driver to start. `former` is the name of a driver of the same run that is known to be dead."""

    run: RunId
    name: str
    former: str | None = None


@dataclass(frozen=True, slots=True)
class DriverStatus:
    """Whether a driver lives. `reason` is one sentence when it failed; `final` says that no other could do better."""

    life: DriverLife
    reason: str | None = None
    final: bool = False


class Backend(Protocol):
    """Starts and watches driver processes. Raises Transient when the place where they run is away, Permanent when it
    refuses a driver.
    """

    async def start(self, launch: DriverLaunch) -> None:
        """Start the driver; a name that runs already is not started twice."""
        ...

    async def outcome(self, name: str) -> DriverStatus:
        """How the driver is; one that nobody knows has ended."""
        ...

    async def close(self) -> None:
        """Ask every driver of this service to end and wait for them as long as the backend's drivers need it."""
        ...
