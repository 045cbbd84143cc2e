"""A service process sends its spans to a collector; one that is away costs spans, not work."""

import asyncio
from pathlib import Path

import pytest

from shared.bus.jetstream.bus import NatsBus
from shared.bus.topology import REWARDMODEL_SCORES
from shared.contracts.envelope import parse
from tests.events import segment_ready
from tests.integration.test_service_process import pending, service
from tests.otlp_collector import otlp_collector, values
from tests.servers import NatsServer, free_ports

TRACE = "0af7651916cd43dd8448eb211c80319c"
ENDPOINT = "ZELDA_TRACING__ENDPOINT"


@pytest.mark.parametrize("path", ["", "/", "/v1/traces"])
async def test_a_collector_receives_the_way_of_a_segment_through_a_service(
    nats_server: NatsServer, bus: NatsBus, tmp_path: Path, path: str
) -> None:
    with otlp_collector() as collector, service(nats_server, tmp_path, **{ENDPOINT: collector.url + path}) as process:
        await asyncio.to_thread(process.wait_ready)
        await bus.publish(segment_ready().model_copy(update={"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}))
        await pending(bus, 0)
        [scores] = await bus.fetch(REWARDMODEL_SCORES, 1, 5)
        assert await asyncio.to_thread(process.end) == 0
        handled, published = await asyncio.to_thread(collector.wait_for, 2)
    assert [name for name, _ in collector.spans] == ["zelda-judge"] * 2
    assert (handled.name, published.name) == ("process zelda.segment.ready.v1", "publish zelda.scores.ready.v1")
    assert values(handled.attributes)["zelda.segment"] == "e0000-s00000"
    assert {span.trace_id.hex() for span in (handled, published)} == {TRACE}
    assert published.parent_span_id == handled.span_id
    assert (parse(scores.raw).traceparent or "").split("-")[1:3] == [TRACE, published.span_id.hex()]


async def test_a_collector_that_is_away_costs_neither_events_nor_the_exit_code(
    nats_server: NatsServer, bus: NatsBus, tmp_path: Path
) -> None:
    [unused] = free_ports(1)
    with service(nats_server, tmp_path, **{ENDPOINT: f"http://127.0.0.1:{unused}"}) as process:
        await asyncio.to_thread(process.wait_ready)
        await bus.publish(segment_ready())
        await pending(bus, 0)
        assert await asyncio.to_thread(process.end) == 0
    lost = [line for line in process.lines() if line["event"] == "spans not sent"]
    assert "Connection refused" in str(lost[0]["error"])


@pytest.mark.parametrize(
    ("setting", "value", "problem"),
    [("ENDPOINT", "collector:4317", "is not an address: use http://HOST:PORT"), ("SAMPLE_RATIO", "5", "SAMPLE_RATIO")],
)
async def test_a_wrong_setting_is_named(
    nats_server: NatsServer, tmp_path: Path, setting: str, value: str, problem: str
) -> None:
    with service(nats_server, tmp_path, **{f"ZELDA_TRACING__{setting}": value}) as process:
        assert await asyncio.to_thread(process.process.wait, 30) == 2
    assert problem in process.log.read_text()
