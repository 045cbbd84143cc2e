"""Routes that list dead letters and replay one: events that no service could handle."""

from datetime import datetime
from typing import Annotated, Final

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from services.coordinator.api.dead_letter_service import event_of, is_replayable, run_of
from services.coordinator.api.dependencies import DeadLetterCommands
from shared.bus.port import DeadLetter
from shared.contracts.ids import RunId

router = APIRouter(tags=["dead letters"])
MAX_NUMBER: Final = 2**53 - 1  # the largest number that every JSON reader keeps exactly
Number = Annotated[int, Path(ge=1, le=MAX_NUMBER, description="number of the dead letter")]


class DeadLetterItem(BaseModel):
    """One event that no service could handle, with the reason."""

    number: int
    time: datetime
    run: RunId | None = Field(None, description="null for a notice of the bus itself")
    event: str | None = Field(None, description="name of the event, e.g. `segment.ready`")
    consumer: str = Field(description="the consumer that gave up")
    deliveries: int = Field(description="how often the bus delivered the event; 0 if it did not say")
    reason: str
    replayable: bool = Field(description="whether the coordinator can replay it; `zelda dlq replay` can replay others")


class ReplayedLetter(BaseModel):
    """The dead letter that was published again and removed."""

    replayed: int


@router.get("/dead-letters")
async def list_dead_letters(commands: DeadLetterCommands) -> list[DeadLetterItem]:
    """List the oldest dead letters of all runs, at most 200. The list is at most five seconds old."""
    return [_item(letter) for letter in await commands.list()]


@router.post("/dead-letters/{number}/replay", status_code=202)
async def replay_dead_letter(commands: DeadLetterCommands, number: Number) -> ReplayedLetter:
    """Publish the event of a dead letter again and remove the letter. Finished work is not repeated."""
    await commands.replay(number)
    return ReplayedLetter(replayed=number)


def _item(letter: DeadLetter) -> DeadLetterItem:
    return DeadLetterItem(
        number=letter.number,
        time=letter.time,
        run=run_of(letter),
        event=event_of(letter),
        consumer=letter.consumer,
        deliveries=letter.attempt,
        reason=letter.reason,
        replayable=is_replayable(letter),
    )
