"""One trace shows the way of a segment: events published, their handlings, their outcomes."""

import asyncio
import json
import logging
import sys
from collections.abc import Callable, Sequence
from functools import partial

import pytest
import structlog
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from shared.bus.consumer import Consumer
from shared.bus.memory import MemoryBus
from shared.bus.subjects import subject
from shared.bus.topology import JUDGE_SEGMENTS, REWARDMODEL_SCORES
from shared.config.settings import LogSettings, TracingSettings
from shared.contracts.envelope import Envelope
from shared.errors import Permanent, Transient
from shared.telemetry import span_export
from shared.telemetry.logging import setup_logging
from shared.telemetry.span_export import LIBRARY, ObservedExporter
from shared.telemetry.tracing import TracingUnavailable, start_tracing
from tests.events import segment_ready
from tests.unit.shared.loop import judged, running, until

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE, PARENT = int("0af7651916cd43dd8448eb211c80319c", 16), int("b7ad6b7169203331", 16)


async def handled(
    *consumers: Consumer, spans: InMemorySpanExporter, wanted: int, traceparent: str = TRACEPARENT
) -> list[ReadableSpan]:
    """The spans of a segment that is published below `traceparent` and handled by each consumer, oldest first."""
    bus, event = MemoryBus(), segment_ready().model_copy(update={"traceparent": traceparent})
    bus.inject(event.to_bytes(), subject(event.data))  # as another process published it
    for number, consumer in enumerate(consumers, 1):
        async with running(bus, consumer):
            await until(partial(is_processed, spans, number))
    assert len(spans.get_finished_spans()) == wanted
    return sorted(spans.get_finished_spans(), key=lambda span: span.start_time or 0)


def is_processed(spans: InMemorySpanExporter, events: int) -> bool:
    return sum(span.name.startswith("process") for span in spans.get_finished_spans()) == events


def below(span: ReadableSpan) -> int | None:
    """The span above this one."""
    return None if span.parent is None else span.parent.span_id


def failing(error: Exception) -> Callable[[Envelope], "asyncio.Future[Sequence[Envelope]]"]:
    async def handler(event: Envelope) -> Sequence[Envelope]:
        raise error

    return lambda event: asyncio.ensure_future(handler(event))


async def test_the_spans_of_a_segment_are_one_trace_from_event_to_event(spans: InMemorySpanExporter) -> None:
    async def judge(event: Envelope) -> Sequence[Envelope]:
        return [judged(event)]

    async def train(event: Envelope) -> Sequence[Envelope]:
        return []

    judging = Consumer(JUDGE_SEGMENTS, judge)
    training = Consumer(REWARDMODEL_SCORES, train)
    first, second, third = await handled(judging, training, spans=spans, wanted=3)
    assert [span.name for span in (first, second, third)] == [
        "process zelda.segment.ready.v1",
        "publish zelda.scores.ready.v1",
        "process zelda.scores.ready.v1",
    ]
    assert {span.context.trace_id for span in (first, second, third)} == {TRACE}
    assert [below(span) for span in (first, second, third)] == [PARENT, first.context.span_id, second.context.span_id]
    assert first.attributes is not None
    assert first.attributes["messaging.consumer.group.name"] == "judge-segments"
    assert (first.attributes["zelda.segment"], first.attributes["zelda.outcome"]) == ("e0000-s00000", "done")
    assert first.status.status_code is StatusCode.UNSET


@pytest.mark.parametrize("text", ["", "00-trace", "00-" + "0" * 32 + "-b7ad6b7169203331-01", "ü" * 55])
async def test_an_event_with_a_malformed_trace_begins_another_one(spans: InMemorySpanExporter, text: str) -> None:
    async def judge(event: Envelope) -> Sequence[Envelope]:
        return []

    (span,) = await handled(Consumer(JUDGE_SEGMENTS, judge), spans=spans, wanted=1, traceparent=text)
    assert span.parent is None


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(Permanent("no manifest"), "dead"), (Transient("busy"), "retried"), (KeyError("x"), "retried")],
)
async def test_a_failed_handling_is_an_error_in_the_trace(
    spans: InMemorySpanExporter, error: Exception, outcome: str
) -> None:
    (span,) = await handled(Consumer(JUDGE_SEGMENTS, failing(error)), spans=spans, wanted=1)
    assert span.attributes is not None
    assert span.attributes["zelda.outcome"] == outcome
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, outcome)


async def test_log_lines_of_an_event_name_its_trace(capsys: pytest.CaptureFixture[str]) -> None:
    setup_logging("judge", LogSettings())

    async def handler(event: Envelope) -> Sequence[Envelope]:
        structlog.get_logger("test").info("looking at it")
        seen.set()
        return []

    seen, bus = asyncio.Event(), MemoryBus()
    async with running(bus, Consumer(JUDGE_SEGMENTS, handler)):
        await bus.publish(segment_ready().model_copy(update={"traceparent": TRACEPARENT}))
        await seen.wait()
        seen.clear()
        await bus.publish(segment_ready(1))
        await seen.wait()
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    traced, untraced = (line for line in lines if line["event"] == "looking at it")
    assert traced["trace_id"] == f"{TRACE:032x}"
    assert "trace_id" not in untraced


class Flaky(SpanExporter):
    """An exporter whose collector is away at times; it logs as the library does."""

    def __init__(self) -> None:
        self.away = True

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if not self.away:
            return SpanExportResult.SUCCESS
        library = logging.getLogger(f"{LIBRARY}.otlp.proto.http.trace_exporter")
        library.warning("connection refused, retrying in 1.2s")
        library.warning("connection refused, retrying in 0.8s")
        library.error("Failed to export spans batch due to timeout")
        return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        self.away = True


def test_lost_spans_are_counted_and_their_reason_is_logged_once_per_outage() -> None:
    flaky, two = Flaky(), [ReadableSpan("a"), ReadableSpan("b")]
    exporter = ObservedExporter(flaky)
    before = REGISTRY.get_sample_value("zelda_tracing_lost_spans_total") or 0
    with capture_logs() as lines:
        for away in (True, True, False, True):
            flaky.away = away
            exporter.export(two)
    exporter.shutdown()
    assert REGISTRY.get_sample_value("zelda_tracing_lost_spans_total") == before + 6
    outage = ["connection refused, retrying in 1.2s", "Failed to export spans batch due to timeout"]
    assert [line["error"] for line in lines] == outage * 2
    assert {line["event"] for line in lines} == {"spans not sent"}


def test_a_share_of_the_traces_is_sent() -> None:
    settings = TracingSettings(endpoint="http://127.0.0.1:9", sample_ratio=0.25)
    provider = span_export.provider("judge", settings, "http://127.0.0.1:9")
    tracer = provider.get_tracer("test")
    sampled = sum(tracer.start_span("x").is_recording() for _ in range(2_000))
    assert 400 < sampled < 600
    provider.shutdown()
    assert provider.resource.attributes["service.name"] == "zelda-judge"


def test_without_the_packages_an_endpoint_is_refused_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shared.telemetry.span_export", None)
    start_tracing("judge", TracingSettings())
    with pytest.raises(TracingUnavailable, match="install the extra `tracing`"):
        start_tracing("judge", TracingSettings(endpoint="http://127.0.0.1:9"))
