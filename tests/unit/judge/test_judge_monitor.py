"""The monitor of the judges: canary set and pairs while a route is unavailable."""

import asyncio

import httpx
import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from services.judge.domain.ledger_rows import LedgerPart
from services.judge.service.monitor import CanarySet
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.unit.judge.harness import JudgeHarness, OpenHarness, refuse
from tests.unit.judge.segment_factory import RUN, archive, recorded, walk


async def judged(one: JudgeHarness, name: str, epoch: int = 0) -> None:
    """Judge a unique segment and wait for the checks that it starts."""
    number = int(name.removeprefix("s"))
    raw = archive(name, {**walk(2 + number % 5), 7: {"rupees": number}}, epoch=epoch)
    await one.runtime.handlers.segment_ready(await recorded(one.store, raw, name, epoch))
    assert one.runtime.monitor is not None
    await one.runtime.monitor.drain()


async def test_canary_set_holds_judged_segments(harness: OpenHarness) -> None:
    one = harness(canary_segments=2, patience_s=0)
    transports = {name: route.clients.transport for name, route in one.runtime.routes.items()}
    for route in one.runtime.routes.values():
        route.clients.transport = httpx.MockTransport(refuse)
    for name in ("s0", "s1"):
        await judged(one, name)
    for name, route in one.runtime.routes.items():
        await route.clients.close()
        route.clients.transport = transports[name]
    for name in ("s2", "s3", "s4"):
        await judged(one, name)
    await judged(one, "s5", epoch=1)
    chosen = CanarySet.from_bytes(await one.store.get(keys.canary_set(RUN)))
    assert [canary.segment for canary in chosen.segments] == ["s2", "s3"]


async def test_canary_set_is_of_the_run_and_not_of_a_process(harness: OpenHarness) -> None:
    """Each replica judged fewer segments than the set has, and none of them lived on."""
    store = MemoryStore()
    for number in range(3):
        await judged(harness(store=store, canary_segments=2, replica=f"judge-{number}"), f"s{number}")
    later = harness(store=store, canary_segments=2, replica="judge-3")
    await judged(later, "s3", epoch=1)
    chosen = CanarySet.from_bytes(await store.get(keys.canary_set(RUN)))
    assert [canary.segment for canary in chosen.segments] == ["s0", "s1"]
    rows = (await later.runtime.ledgers.open(RUN, 1)).snapshot().canary
    assert [row.change for row in rows] == [0] * 6, "three judges on two segments"


async def test_an_epoch_without_a_canary_set_is_judged(harness: OpenHarness) -> None:
    one = harness(canary_segments=2)
    await judged(one, "s0", epoch=1)
    assert (await one.scores("s0", epoch=1)).status == "judged"
    assert not await one.store.exists(keys.canary_set(RUN))


async def test_unavailable_route_costs_only_its_own_judges_drift(harness: OpenHarness) -> None:
    one = harness(canary_segments=3, patience_s=0)
    for name in ("s0", "s1", "s2"):
        await judged(one, name)
    puzzle = one.runtime.routes["rules-puzzle"].clients
    await puzzle.close()
    puzzle.transport = httpx.MockTransport(refuse)
    await judged(one, "s3", epoch=1)
    await one.runtime.ledgers.flush()
    part = LedgerPart.from_bytes(await one.store.get(f"{keys.judge_reports_prefix(RUN, 1)}judge-0.json"))
    assert sorted(row.judge for row in part.canary) == ["state"] * 3 + ["vision"] * 3


async def test_slow_checks_do_not_delay_the_ledger_flush(harness: OpenHarness) -> None:
    one, answered = harness(audit_share=1.0), asyncio.Event()

    async def late(request: httpx.Request) -> httpx.Response:
        await answered.wait()
        return httpx.Response(400)

    await judged(one, "s0")
    await one.runtime.handlers.segment_ready(await recorded(one.store, archive("s1", walk(6)), "s1"))
    state = one.runtime.routes["rules-state"].clients
    await state.close()
    state.transport = httpx.MockTransport(late)  # for the pair
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(one.runtime.close(), 0.5)
    answered.set()
    part = LedgerPart.from_bytes(await one.store.get(f"{keys.judge_reports_prefix(RUN, 0)}judge-0.json"))
    assert {row.segment for row in part.rows} == {"s0", "s1"}
    assert part.usage["state"].calls == 2


async def test_requests_of_a_check_lie_below_its_own_span(harness: OpenHarness, spans: InMemorySpanExporter) -> None:
    one = harness(canary_segments=1)
    await judged(one, "s0")
    spans.clear()
    await judged(one, "s1", epoch=1)
    found = spans.get_finished_spans()
    (check,) = [span for span in found if span.name == "check canaries"]
    below = [span for span in found if span.parent is not None and span.parent.span_id == check.context.span_id]
    assert len([span for span in found if span.name.startswith("chat")]) == 6, "three judges on two segments"
    assert [span.name.partition(" ")[0] for span in below] == ["chat"] * 3
