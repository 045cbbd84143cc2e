"""Requests that change something begin or continue a trace, down to the events that they cause; reading begins none."""

from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from services.coordinator.api import app
from shared.bus.topology import TRAINER_RUNS
from tests.unit.coordinator.api_client import client
from tests.unit.coordinator.harness import SHORT_RUN, Harness

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture(autouse=True)
def _app_with_this_provider(monkeypatch: pytest.MonkeyPatch, tracer_provider: TracerProvider) -> None:
    monkeypatch.setitem(app.TELEMETRY, "tracer_provider", tracer_provider)


async def test_starting_a_run_continues_the_callers_trace(tmp_path: Path, spans: InMemorySpanExporter) -> None:
    harness = Harness()
    async with client(harness, tmp_path) as http:
        header = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1"}
        created = await http.post("/runs", json={"run": "demo", "config": SHORT_RUN}, headers=header)
        assert created.status_code == 201
        stopped = await http.post("/runs/demo/stop", headers=header)
        assert stopped.status_code == 202
    by_name = {span.name: span for span in spans.get_finished_spans()}
    request = by_name["POST /runs/{run}/stop"]
    published = by_name["publish zelda.run.changed.v1"]
    assert request.parent is not None
    assert (f"{request.context.trace_id:032x}", f"{request.parent.span_id:016x}") == (TRACE, PARENT)
    assert published.parent is not None
    assert published.parent.span_id == request.context.span_id
    *_, changed = await harness.consume(TRAINER_RUNS)
    assert (changed.traceparent or "").split("-")[1:3] == [TRACE, f"{published.context.span_id:016x}"]


async def test_reading_begins_no_trace(tmp_path: Path, spans: InMemorySpanExporter) -> None:
    async with client(Harness(), tmp_path) as http:
        for path in ("/runs", "/docs", "/runs/none"):
            await http.get(path)
    assert spans.get_finished_spans() == ()


async def test_a_request_without_a_token_begins_no_trace(tmp_path: Path, spans: InMemorySpanExporter) -> None:
    async with client(Harness(), tmp_path, token=None) as http:
        assert (await http.post("/runs", json={})).status_code == 401
    assert spans.get_finished_spans() == ()
