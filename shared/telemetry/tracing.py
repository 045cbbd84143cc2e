"""Traces: the path of a segment through services and models, as spans in an OpenTelemetry collector.

Spans are sent only with `tracing.endpoint`. The context travels as a `traceparent`
(https://www.w3.org/TR/trace-context/) in events and in requests to models. A process that sends no spans propagates it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from shared.config.settings import TracingSettings

MAX_STATUS_LENGTH: Final = 500  # characters of an error's text

_PROPAGATOR: Final = TraceContextTextMapPropagator()
_TRACER = trace.get_tracer("zelda-rlaif")  # without a provider, its spans only propagate the context

Attributes = Mapping[str, str | int | float]


class TracingUnavailable(ValueError):
    """A collector is configured, but the packages that send spans are not installed."""


def start_tracing(service: str, settings: TracingSettings) -> None:
    """Send the spans of this process from now on, if there is a collector. Raises TracingUnavailable."""
    if settings.endpoint is None:
        return
    try:
        from shared.telemetry.span_export import provider  # loads OpenTelemetry's SDK
    except ImportError as error:
        raise TracingUnavailable(
            "ZELDA_TRACING__ENDPOINT is set, but the packages that send spans are missing: install the extra `tracing`"
        ) from error
    trace.set_tracer_provider(provider(service, settings, settings.endpoint))


def stop_tracing() -> None:
    """Send the last spans; a collector that is away delays the end by at most `span_export.EXPORT_S`."""
    end = getattr(trace.get_tracer_provider(), "shutdown", None)
    if end is not None:
        end()


@contextmanager
def span(name: str, kind: SpanKind, attributes: Attributes, *, parent: str | None = None) -> Iterator[Span]:
    """A span around the block: a child of `parent`, a `traceparent`, or else of the current span.

    An exception that leaves the block is the span's error.
    """
    above = None if parent is None else _PROPAGATOR.extract({"traceparent": parent}, context.Context())
    with _TRACER.start_as_current_span(name, above, kind, attributes, record_exception=False) as current:
        yield current


def fail(current: Span, reason: str) -> None:
    """Mark the span as failed."""
    current.set_status(Status(StatusCode.ERROR, reason[:MAX_STATUS_LENGTH]))


def trace_context() -> dict[str, str]:
    """The current span as `traceparent`, for an event or the headers of a request; empty outside of a trace."""
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier)
    carrier.pop("tracestate", None)  # of a caller of the API: events have no field for it
    return carrier


def trace_id(current: Span) -> str | None:
    """The trace of a span in hexadecimal digits, for log lines; None outside of a trace."""
    found = current.get_span_context()
    return trace.format_trace_id(found.trace_id) if found.is_valid else None
