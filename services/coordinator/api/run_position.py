"""Where a page of the list of runs ends. It stays valid when its last run is deleted before the next request."""

from datetime import UTC, datetime
from typing import Final, NamedTuple, Self

from shared.contracts.ids import RunId
from shared.contracts.run import RunRecord

BETWEEN: Final = "~"  # between time and name: an address holds it unchanged, and no name contains it


class RunPosition(NamedTuple):
    """The position of a run among all runs, by time of creation; it never changes."""

    created: datetime
    run: RunId

    @classmethod
    def of(cls, record: RunRecord) -> Self:
        """The position of the run with this record."""
        return cls(record.created, record.run)

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The position that `str` wrote; None for a mere name, which pages of earlier versions ended with.

        Raises ValueError for any other text.
        """
        created, between, run = text.rpartition(BETWEEN)
        name = RunId(run)
        if not between:
            return None
        try:
            time = datetime.fromisoformat(created)
        except ValueError:
            time = datetime.min
        if time.tzinfo is None:  # it could not be compared with the time of a run
            raise ValueError("it is neither the `next` of a page nor the name of a run")
        return cls(time, name)

    def __str__(self) -> str:
        """The position as text for an address."""
        return f"{self.created.astimezone(UTC).replace(tzinfo=None).isoformat()}Z{BETWEEN}{self.run}"


def check_position(text: str) -> str:
    """Return `text` if it is a position or the name of a run; else raise ValueError."""
    RunPosition.parse(text)
    return text
