"""The envelope of every event: CloudEvents 1.0 attribute names (https://github.com/cloudevents/spec), structured JSON.

The id is derived from the announced object: a republished event is the same event.
"""

import json
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, Field, SerializeAsAny, ValidationError, model_validator

from shared.config.problems import first_problem
from shared.contracts.base import Contract, sha256
from shared.contracts.events import EVENT_BY_TYPE, Epoch, EventData
from shared.contracts.ids import RunId
from shared.errors import ContractError

MAX_EVENT_BYTES = 8192  # bigger data belongs into the store; the event carries its key


class Envelope(Contract):
    """One event as it travels.

    `fence` is the coordinator's lease revision; receivers refuse a lower one. `traceparent` (W3C) is the span that
    published the event; the bus sets it if this process, or the one whose event it handles, sends traces.
    """

    specversion: Literal["1.0"] = "1.0"
    id: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    source: Annotated[str, Field(min_length=1, max_length=100)]
    type: Annotated[str, Field(max_length=60)]
    subject: Annotated[str, Field(min_length=1, max_length=512)]
    time: AwareDatetime
    datacontenttype: Literal["application/json"] = "application/json"
    runid: RunId
    epoch: Epoch
    fence: Annotated[int, Field(ge=0)] = 0
    traceparent: Annotated[str | None, Field(max_length=64)] = None
    data: SerializeAsAny[EventData]

    @model_validator(mode="before")
    @classmethod
    def _data_by_type(cls, values: Any) -> Any:
        """Parse `data` with the model that belongs to `type`."""
        if isinstance(values, dict) and isinstance(values.get("data"), dict):
            model = EVENT_BY_TYPE.get(str(values.get("type")))
            if model is None:
                raise ValueError(f"unknown event type {values.get('type')!r:.80}")
            return {**values, "data": model.model_validate(values["data"])}
        return values

    @model_validator(mode="after")
    def _agrees_with_data(self) -> Self:
        if (self.runid, self.epoch, self.type) != (self.data.run, self.data.epoch, self.data.TYPE):
            raise ValueError("runid, epoch or type of the envelope differ from its data")
        return self


def wrap(
    data: EventData,
    *,
    source: str,
    fence: int = 0,
    time: datetime | None = None,
) -> Envelope:
    """Put event data into its envelope. Equal data gives the same id, for any publisher, any number of times."""
    return Envelope(
        id=event_id(data),
        source=source,
        type=data.TYPE,
        subject=data.key,
        time=time or datetime.now(UTC),
        runid=data.run,
        epoch=data.epoch,
        fence=fence,
        data=data,
    )


def event_id(data: EventData) -> str:
    """sha256(type | key of the commit object | its digest): also the `Nats-Msg-Id` that removes duplicates."""
    return sha256(f"{data.TYPE}|{data.key}|{data.digest}".encode())


def parse(raw: bytes) -> Envelope:
    """Parse bytes from the bus, or raise ContractError with one sentence."""
    if len(raw) > MAX_EVENT_BYTES:
        raise ContractError(f"event of {len(raw)} bytes: the limit is {MAX_EVENT_BYTES}")
    try:
        return Envelope.model_validate(json.loads(raw))
    except ValidationError as error:
        raise ContractError(f"not a valid event: {first_problem(error)}") from error
    except (ValueError, RecursionError) as error:
        raise ContractError(f"event is not JSON: {error}"[:300]) from error
