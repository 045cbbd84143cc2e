"""Spans of events: one where it is published, one for each handling of it; the event's `traceparent` connects them.

Names and attributes follow OpenTelemetry's conventions for messaging
(https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from opentelemetry.trace import Span, SpanKind

from shared.contracts.envelope import Envelope
from shared.telemetry.tracing import Attributes, fail, span, trace_context

FAILED: Final = frozenset({"dead", "retried"})  # outcomes of a handling


@contextmanager
def publish_span(event: Envelope) -> Iterator[Envelope]:
    """A span for publishing the event; yields the event with the span as its `traceparent`."""
    with span(f"publish {event.type}", SpanKind.PRODUCER, _attributes(event, "send")):
        yield event.model_copy(update=trace_context())


@contextmanager
def process_span(event: Envelope, consumer: str, delivery: int) -> Iterator[Span]:
    """A span for one handling of the event, a child of the one that published it."""
    attributes = {
        **_attributes(event, "process"),
        "messaging.consumer.group.name": consumer,
        "zelda.delivery": delivery,
    }
    with span(f"process {event.type}", SpanKind.CONSUMER, attributes, parent=event.traceparent) as current:
        yield current


def end_with_outcome(current: Span, outcome: str) -> None:
    """Record how a handling ended."""
    current.set_attribute("zelda.outcome", outcome)
    if outcome in FAILED:
        fail(current, outcome)


def _attributes(event: Envelope, operation: str) -> Attributes:
    fields: dict[str, str | int] = {
        "messaging.system": "nats",
        "messaging.operation.type": operation,
        "messaging.destination.name": event.type,
        "messaging.message.id": event.id,
        "zelda.run": event.runid,
        "zelda.epoch": event.epoch,
    }
    segment = getattr(event.data, "segment", None)
    return fields if segment is None else {**fields, "zelda.segment": segment}
