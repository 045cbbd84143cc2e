"""How long a segment waits for a judge with an unavailable route, and how it ends after the wait."""

import asyncio

import httpx
import pytest

from services.judge.service import judge
from shared.contracts.events import ScoresReady
from shared.contracts.ids import SegmentId
from shared.contracts.judging.epoch_report import EpochJudging
from shared.errors import Permanent, Transient
from shared.store import keys
from tests.unit.judge.harness import GOOD, JudgeHarness, OpenHarness, refuse
from tests.unit.judge.segment_factory import RUN, archive, recorded, walk

VISION = "rules-vision"


def too_many(request: httpx.Request) -> httpx.Response:
    """A server without a free slot."""
    return httpx.Response(429)


def vision_is(one: JudgeHarness, how: httpx.AsyncBaseTransport) -> None:
    clients = one.runtime.routes[VISION].clients
    clients._idle.clear()  # these would keep talking to the previous server
    clients.transport = how


async def test_busy_route_is_waited_for_and_a_silent_one_is_not(harness: OpenHarness) -> None:
    one = harness(patience_s=0.3)
    event = await recorded(one.store, archive("s1", GOOD))
    vision_is(one, httpx.MockTransport(too_many))
    for _ in range(3):
        with pytest.raises(Transient, match="429"):
            await one.runtime.handlers.segment_ready(event)
        await asyncio.sleep(0.2)
    vision_is(one, httpx.MockTransport(refuse))
    await asyncio.sleep(0.4)
    await one.runtime.handlers.segment_ready(event)
    assert [result.status for result in (await one.scores()).judges] == ["judged", "judged", "abstained"]


async def test_retry_after_longer_than_patience_does_not_count_as_silence(harness: OpenHarness) -> None:
    one = harness(patience_s=0.3)
    event = await recorded(one.store, archive("s1", GOOD))
    vision_is(one, httpx.MockTransport(lambda _: httpx.Response(429, headers={"retry-after": "60"})))
    with pytest.raises(Transient, match="429"):
        await one.runtime.handlers.segment_ready(event)
    await asyncio.sleep(0.5)
    with pytest.raises(Transient, match="asks for a pause"):
        await one.runtime.handlers.segment_ready(event)


async def test_route_that_answers_other_calls_is_not_absent(harness: OpenHarness) -> None:
    one = harness(patience_s=1.0, cache_size=0)
    event = await recorded(one.store, archive("s1", GOOD))
    other = await recorded(one.store, archive("s2", walk(3)), "s2")
    working = one.runtime.routes[VISION].clients.transport
    assert working is not None
    vision_is(one, httpx.MockTransport(refuse))
    with pytest.raises(Transient):
        await one.runtime.handlers.segment_ready(event)
    await asyncio.sleep(1.0)
    vision_is(one, working)
    await one.runtime.handlers.segment_ready(other)
    vision_is(one, httpx.MockTransport(refuse))
    with pytest.raises(Transient):
        await one.runtime.handlers.segment_ready(event)


async def test_vote_session_timeout_keeps_the_other_results(
    harness: OpenHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = harness()

    async def never(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(3_600)
        raise AssertionError

    monkeypatch.setattr(judge, "MAX_SEGMENT_S", 1.0)
    vision_is(one, httpx.MockTransport(never))
    with pytest.raises(Transient, match="no answer within 1 s"):
        await one.runtime.handlers.segment_ready(await recorded(one.store, archive("s1", GOOD)))
    assert len(await one.store.list("episodes/partial/")) == 1
    assert one.runtime.routes[VISION]._semaphore.in_flight == 0


async def test_redelivery_deletes_a_partial_result_left_by_a_crash(harness: OpenHarness) -> None:
    one = harness()
    event = await recorded(one.store, archive("s1", GOOD))
    await one.runtime.handlers.segment_ready(event)
    left = keys.partial_scores(RUN, 0, SegmentId("s1"))
    await one.store.put(left, b"{}")
    await one.runtime.handlers.segment_ready(event)
    assert not await one.store.exists(left)


async def test_last_delivery_commits_the_results_so_far(harness: OpenHarness) -> None:
    one = harness(patience_s=3_600)
    event = await recorded(one.store, archive("s1", GOOD))
    vision_is(one, httpx.MockTransport(refuse))
    with pytest.raises(Transient):
        await one.runtime.handlers.segment_ready(event)
    (ready,) = await one.runtime.handlers.segment_dead(event, "given up after 7 failures")

    scores = await one.scores()
    assert isinstance(ready.data, ScoresReady)
    assert (ready.data.status, scores.status) == ("judged", "judged"), "nine tenths of the weight were judged"
    assert [result.status for result in scores.judges] == ["judged", "judged", "abstained"]
    assert scores.judges[2].reasons == ["given up after 7 failures"]
    assert not await one.store.list("episodes/partial/")
    await one.runtime.ledgers.flush()
    report = EpochJudging.from_bytes(await one.store.get(keys.judge_report(RUN, 0)))
    assert report.segments == {"judged": 1}


async def test_segment_without_any_result_abstains_and_is_not_dead(harness: OpenHarness) -> None:
    one = harness()
    event = await recorded(one.store, archive("s1", GOOD))
    for route in one.runtime.routes.values():
        route.clients.transport = httpx.MockTransport(refuse)
    with pytest.raises(Transient):
        await one.runtime.handlers.segment_ready(event)
    await one.runtime.handlers.segment_dead(event, "given up after 7 failures")
    scores = await one.scores()
    assert (scores.status, scores.weighted, len(scores.judges)) == ("abstained", None, 3)


async def test_segment_deleted_while_it_waits_is_dead(harness: OpenHarness) -> None:
    one = harness()
    event = await recorded(one.store, archive("s1", GOOD))
    vision_is(one, httpx.MockTransport(refuse))
    with pytest.raises(Transient):
        await one.runtime.handlers.segment_ready(event)
    await one.store.delete(event.data.key)
    with pytest.raises(Permanent) as gone:
        await one.runtime.handlers.segment_ready(event)
    await one.runtime.handlers.segment_dead(event, str(gone.value))
    assert (await one.scores()).status == "dead"


async def test_the_last_delivery_of_a_deleted_run_writes_nothing(harness: OpenHarness) -> None:
    one = harness()
    event = await recorded(one.store, archive("s1", GOOD))
    await one.store.delete(event.data.key)
    await one.store.put(keys.deleted_run(RUN), RUN.encode())
    assert await one.runtime.handlers.segment_dead(event, "given up after 7 failures") == []
    await one.runtime.ledgers.flush()
    left = [entry for prefix in keys.prefixes_of_run(RUN).values() for entry in await one.store.list(prefix)]
    assert left == []


async def test_unreadable_partial_result_is_judged_again(harness: OpenHarness) -> None:
    one = harness()
    event = await recorded(one.store, archive("s1", GOOD))
    await one.store.put(keys.partial_scores(RUN, 0, SegmentId("s1")), b'{"since": "yesterday"}')
    await one.runtime.handlers.segment_ready(event)
    assert [result.status for result in (await one.scores()).judges] == ["judged"] * 3
