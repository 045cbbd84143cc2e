"""The judge from segment.ready to scores.ready, with the rules judge behind a real HTTP client without a socket."""

import asyncio
import json

import httpx
import pytest

from services.judge.rules_server.settings import Behaviour
from shared.contracts.base import sha256
from shared.contracts.envelope import wrap
from shared.contracts.events import ScoresReady, SegmentReady
from shared.contracts.ids import JudgeName, SegmentId
from shared.contracts.judging.epoch_report import EpochJudging
from shared.errors import ContractError, DigestMismatch, Transient
from shared.store import keys
from shared.store.port import AlreadyExists
from tests.unit.judge.harness import GOOD, OpenHarness, refuse
from tests.unit.judge.segment_factory import RUN, archive, recorded, rows, walk


async def test_segment_becomes_a_score_with_every_vote_of_three_judges(harness: OpenHarness) -> None:
    one = harness()
    event = await recorded(one.store, archive("s1", GOOD))
    (ready,) = await one.runtime.handlers.segment_ready(event)

    scores = await one.scores()
    assert isinstance(ready.data, ScoresReady)
    assert ready.data.status == "judged"
    assert ready.data.digest == sha256(await one.store.get(ready.data.key))
    assert {r.judge: set(r.dimensions) for r in scores.judges} == {
        "state": {"progress", "dialog", "efficiency"},
        "puzzle": {"puzzle"},
        "vision": {"novelty"},
    }
    assert all(len(score.votes) == 3 for r in scores.judges for score in r.dimensions.values())
    assert scores.judges[0].dimensions["progress"].value == 0.6
    assert scores.weighted == pytest.approx(
        sum(scores.weights[name] * score.value for result in scores.judges for name, score in result.dimensions.items())
    )
    assert scores.agreement == 1.0
    assert one.calls == 3


async def test_what_the_first_step_gained_counts_in_the_score(harness: OpenHarness) -> None:
    judges, gained = harness(), {0: {"treasures": ["sword"], "rooms_visited": 2, "room": 0x13}}
    before = json.dumps(rows(1)[0])
    for name, raw in (("s1", archive("s1", gained)), ("s2", archive("s2", gained, before=before))):
        await judges.runtime.handlers.segment_ready(await recorded(judges.store, raw, name))
    unknown, known = [(await judges.scores(name)).weighted for name in ("s1", "s2")]
    assert unknown is not None
    assert known is not None
    assert known > unknown


async def test_redelivered_segment_makes_no_call_and_the_same_event(harness: OpenHarness) -> None:
    one = harness()
    event = await recorded(one.store, archive("s1", GOOD))
    first = await one.runtime.handlers.segment_ready(event)
    again = await one.runtime.handlers.segment_ready(event)
    assert [e.id for e in again] == [e.id for e in first]
    assert one.calls == 3


async def test_republished_segment_in_progress_is_judged_once(harness: OpenHarness) -> None:
    one = harness(Behaviour(latency_ms=200), cache_size=0)
    event = await recorded(one.store, archive("s1", GOOD))
    first = asyncio.create_task(one.runtime.handlers.segment_ready(event))
    await asyncio.sleep(0.05)
    assert await one.runtime.handlers.segment_ready(event) == []
    assert not first.done(), "the second delivery waited for the first"
    (ready,) = await first
    assert one.calls == 3
    assert [e.id for e in await one.runtime.handlers.segment_ready(event)] == [ready.id]


async def test_a_forged_event_concludes_no_segment(harness: OpenHarness) -> None:
    """Its key is another segment's archive: neither a score nor a dead segment may follow."""
    one = harness()
    event = await recorded(one.store, archive("s1", GOOD))
    assert isinstance(event.data, SegmentReady)
    data = event.data.model_copy(update={"segment": SegmentId("s2")})
    forged = wrap(data, source="trainer")
    with pytest.raises(ContractError, match=r"segment.ready of s2 names .*, which is the key of another object"):
        await one.runtime.handlers.segment_ready(forged)
    assert await one.runtime.handlers.segment_dead(forged, "refused") == []
    assert await one.store.list("episodes/scores/") == []


async def test_failed_segment_is_no_longer_in_progress(harness: OpenHarness) -> None:
    one = harness()
    event = await recorded(one.store, b"not a zip")
    for _ in range(2):
        with pytest.raises(ContractError):
            await one.runtime.handlers.segment_ready(event)


async def test_identical_segment_is_judged_from_the_cache(harness: OpenHarness) -> None:
    one = harness()
    for name in ("s1", "s2"):
        await one.runtime.handlers.segment_ready(await recorded(one.store, archive(name, GOOD), name))
    assert one.calls == 3
    first, second = await one.scores("s1"), await one.scores("s2")
    assert second.weighted == first.weighted
    assert all(result.usage.calls == 0 for result in second.judges)


async def test_equal_play_gets_equal_votes_without_the_cache(harness: OpenHarness) -> None:
    """Otherwise the segment that arrives first would decide which votes the cache repeats."""
    one = harness(Behaviour(vote_noise=2.0), cache_size=0)
    for name in ("s1", "s2"):
        await one.runtime.handlers.segment_ready(await recorded(one.store, archive(name, GOOD), name))
    first, second = await one.scores("s1"), await one.scores("s2")
    assert [result.dimensions for result in first.judges] == [result.dimensions for result in second.judges]


async def test_unavailable_route_defers_the_segment_and_keeps_other_results(harness: OpenHarness) -> None:
    one = harness()
    event = await recorded(one.store, archive("s1", GOOD))
    vision = one.runtime.routes["rules-vision"].clients
    working, vision.transport = vision.transport, httpx.MockTransport(refuse)
    with pytest.raises(Transient, match="rules-vision"):
        await one.runtime.handlers.segment_ready(event)
    assert one.calls == 2
    await vision.close()
    vision.transport = working
    await one.runtime.handlers.segment_ready(event)
    assert one.calls == 3, "the two judges that had answered were asked again"
    assert (await one.scores()).status == "judged"
    assert not await one.store.list("episodes/partial/")


async def test_absent_judge_abstains_without_a_number_after_patience(harness: OpenHarness) -> None:
    one = harness(patience_s=0)
    event = await recorded(one.store, archive("s1", GOOD))
    one.runtime.routes["rules-vision"].clients.transport = httpx.MockTransport(refuse)
    await one.runtime.handlers.segment_ready(event)
    scores = await one.scores()
    vision = scores.judges[2]
    assert (vision.judge, vision.status, vision.dimensions) == ("vision", "abstained", {})
    assert "ConnectError" in vision.reasons[0]
    assert scores.status == "judged", "nine tenths of the weight were judged"


async def test_all_routes_unavailable_is_an_abstention_without_a_number(harness: OpenHarness) -> None:
    one = harness(patience_s=0)
    for route in one.runtime.routes.values():
        route.clients.transport = httpx.MockTransport(refuse)
    await one.runtime.handlers.segment_ready(await recorded(one.store, archive("s1", GOOD)))
    scores = await one.scores()
    assert (scores.status, scores.weighted, scores.agreement) == ("abstained", None, None)


async def test_garbage_from_models_is_an_abstention_with_reasons(harness: OpenHarness) -> None:
    one = harness(Behaviour(garbage_rate=1.0))
    await one.runtime.handlers.segment_ready(await recorded(one.store, archive("s1", GOOD)))
    scores = await one.scores()
    assert scores.status == "abstained"
    assert scores.weighted is None
    assert all(result.reasons and not result.dimensions for result in scores.judges)


async def test_server_that_ignores_n_is_asked_once_per_vote(harness: OpenHarness) -> None:
    one = harness(Behaviour(ignore_n=True))
    await one.runtime.handlers.segment_ready(await recorded(one.store, archive("s1", GOOD)))
    scores = await one.scores()
    assert scores.status == "judged"
    assert [result.usage.calls for result in scores.judges] == [3, 3, 3]
    assert all(len(score.votes) == 3 for result in scores.judges for score in result.dimensions.values())


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"not a zip", ContractError),
        (archive("s1", lines=["{"]), ContractError),
        (archive("s1", lines=[]), ContractError),
        (archive("s1", lines=["{}"] * 299), ContractError),
        (archive("s1", lines=["{}"] * 100_000), ContractError),
        (archive("s1", before="{"), ContractError),
        (archive("s1", before="[]"), ContractError),
        (archive("other"), ContractError),
        (archive("s1", GOOD).replace(b'"group"', b'"grouq"'), ContractError),
        (archive("s1", GOOD, members_of="s2"), DigestMismatch),
    ],
)
async def test_unreadable_segment_is_dead_with_a_reason(
    harness: OpenHarness, raw: bytes, error: type[Exception]
) -> None:
    one = harness()
    event = await recorded(one.store, raw)
    with pytest.raises(error) as caught:
        await one.runtime.handlers.segment_ready(event)
    (ready,) = await one.runtime.handlers.segment_dead(event, str(caught.value))
    scores = await one.scores()
    assert isinstance(ready.data, ScoresReady)
    assert (ready.data.status, scores.status, scores.weighted) == ("dead", "dead", None)
    assert scores.error
    assert one.calls == 0
    assert [e.id for e in await one.runtime.handlers.segment_ready(event)] == [ready.id]


async def test_two_replicas_on_one_segment_leave_one_score_and_one_event(harness: OpenHarness) -> None:
    one, other = harness(Behaviour(vote_noise=2.0)), harness(Behaviour(vote_noise=2.0))
    other.runtime.handlers._store = one.store
    other.runtime.loader._store = one.store
    event = await recorded(one.store, archive("s1", GOOD))
    both = await asyncio.gather(*(harness.runtime.handlers.segment_ready(event) for harness in (one, other)))
    assert both[0][0].id == both[1][0].id
    assert len(await one.store.list(keys.scores_prefix(RUN, 0))) == 1


async def test_report_ignores_votes_of_a_replica_that_committed_second(
    harness: OpenHarness,
) -> None:
    first, second = harness(canary_segments=1), harness(Behaviour(garbage_rate=1.0, latency_ms=300), canary_segments=1)
    for part in (second.runtime.handlers, second.runtime.loader):
        part._store = first.store
    event = await recorded(first.store, archive("s1", GOOD))
    await asyncio.gather(*(one.runtime.handlers.segment_ready(event) for one in (first, second)))
    assert (await first.scores()).status == "judged"
    for one, statuses in ((first, ["judged"]), (second, [])):
        ledger = await one.runtime.ledgers.open(RUN, 0)
        assert [row.status for row in ledger.snapshot().rows] == statuses


async def test_score_with_a_repeated_create_is_recorded(harness: OpenHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    one = harness()
    event = await recorded(one.store, archive("s1", GOOD))

    async def repeated(key: str, data: bytes) -> str:
        await one.store.put(key, data)
        raise AlreadyExists(key)

    monkeypatch.setattr(one.store, "create", repeated)
    await one.runtime.handlers.segment_ready(event)
    assert len((await one.runtime.ledgers.open(RUN, 0)).snapshot().rows) == 1


async def test_dungeon_phase_sets_its_weights(harness: OpenHarness) -> None:
    one = harness()
    inside = {step: {**values, "in_dungeon": True, "dungeon": 0} for step, values in GOOD.items()}
    await one.runtime.handlers.segment_ready(await recorded(one.store, archive("s1", inside)))
    scores = await one.scores()
    assert (scores.phase, scores.weights["puzzle"], scores.weights["dialog"]) == ("dungeon", 0.4, 0.05)


async def test_budget_stops_before_the_call_that_would_exceed_it(harness: OpenHarness) -> None:
    one = harness(budget_calls=4, cache_size=0)
    for name in ("s1", "s2", "s3"):
        await one.runtime.handlers.segment_ready(await recorded(one.store, archive(name, GOOD), name))
    assert one.calls == 4
    assert [(await one.scores(name)).status for name in ("s1", "s3")] == ["judged", "abstained"]
    assert "budget of 4 calls" in (await one.scores("s3")).judges[0].reasons[-1]


async def test_split_votes_request_more_and_all_votes_are_kept(harness: OpenHarness) -> None:
    one = harness(Behaviour(vote_noise=2.5))
    counts = set()
    for number in range(12):
        name = f"s{number}"
        changes = {**GOOD, 5: {"rupees": number}}
        await one.runtime.handlers.segment_ready(await recorded(one.store, archive(name, changes), name))
        for result in (await one.scores(name)).judges:
            counts |= {len(score.votes) for score in result.dimensions.values()}
    assert counts <= {3, 7, 11}
    assert 11 in counts


async def test_report_of_an_epoch_adds_up(harness: OpenHarness) -> None:
    one = harness(Behaviour(vote_noise=0.8))
    for number in range(6):
        name = f"s{number}"
        raw = archive(name, walk(1 + number), milestones_end=number, index=number)
        await one.runtime.handlers.segment_ready(await recorded(one.store, raw, name))
    await one.runtime.ledgers.flush()
    merged = EpochJudging.from_bytes(await one.store.get(keys.judge_report(RUN, 0)))
    assert merged.segments == {"judged": 6}
    assert merged.usage.calls == one.calls
    assert merged.votes == sum(judge.votes for judge in merged.judges.values()) >= 54
    assert merged.correlation.segment is not None
    assert merged.correlation.segment > 0.5


async def test_canaries_are_judged_again_in_the_next_epoch_without_drift(harness: OpenHarness) -> None:
    one = harness(canary_segments=3, audit_share=1.0)
    for epoch in (0, 1):
        for number in range(4):
            name = f"e{epoch}s{number}"
            raw = archive(name, {**walk(2 + number), 7: {"rupees": 10 * epoch + number}}, epoch=epoch)
            await one.runtime.handlers.segment_ready(await recorded(one.store, raw, name, epoch))
        assert one.runtime.monitor is not None
        await one.runtime.monitor.drain()
    await one.runtime.ledgers.flush()
    merged = EpochJudging.from_bytes(await one.store.get(keys.judge_report(RUN, 1)))
    assert merged.judges[JudgeName("state")].drift == 0
    assert merged.pairs.compared == 3
    assert merged.pairs.consistent == 1.0


async def test_two_concurrent_epochs_have_their_own_pairs(harness: OpenHarness) -> None:
    one = harness(audit_share=1.0)
    for number in range(4):
        for epoch in (0, 1):
            name = f"e{epoch}s{number}"
            raw = archive(name, {**walk(2 + number), 7: {"rupees": 10 * epoch + number}}, epoch=epoch)
            await one.runtime.handlers.segment_ready(await recorded(one.store, raw, name, epoch))
    assert one.runtime.monitor is not None
    await one.runtime.monitor.drain()
    await one.runtime.ledgers.flush()
    for epoch in (0, 1):
        merged = EpochJudging.from_bytes(await one.store.get(keys.judge_report(RUN, epoch)))
        assert merged.pairs.compared == 3
