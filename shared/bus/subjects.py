"""Subject of an event on the bus: `zelda.v1.<run>.<name>`, e.g. `zelda.v1.demo.segment.ready`."""

from shared.contracts.events import EventData
from shared.contracts.ids import RunId

ROOT = "zelda.v1"


def subject(data: EventData) -> str:
    """The subject on which an event is published."""
    return f"{ROOT}.{data.run}.{data.NAME}"


def pattern(event: type[EventData], run: RunId | None = None) -> str:
    """The subject filter for one kind of event, of one run or of all."""
    return f"{ROOT}.{run or '*'}.{event.NAME}"
