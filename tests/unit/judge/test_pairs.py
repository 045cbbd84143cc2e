"""Pairs as labels: after an epoch the judge compares selected pairs of its segments, once each, in both orders."""

import json
from datetime import UTC, datetime
from typing import Any

import httpx
import numpy as np
import pytest

from services.judge.domain.ledger_rows import LedgerPart
from services.judge.service.gate_keeper import JudgeGates
from shared.contracts.base import sha256
from shared.contracts.card import PairAccuracy, RewardModelCard
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.epoch import EpochFinishedRecord, EpochStart, RewardModelRef, SegmentRef
from shared.contracts.events import EpochFinished, RunState
from shared.contracts.ids import Digest, EpisodeId, JudgeName, SegmentId
from shared.contracts.judging.pairs import PairComparison, PairSelection
from shared.contracts.learning.reward_learning import LabelsConfig
from shared.contracts.run import RunConfig, RunRecord
from shared.contracts.scores import JudgeReplies
from shared.errors import Transient
from shared.game.recording.segment import Members, pack_state, write_segment
from shared.process import failpoints
from shared.rewardnet import dump, random_weights
from shared.state.pairs import PairReader
from shared.store import keys
from tests.unit.judge.harness import JudgeHarness, OpenHarness, refuse
from tests.unit.judge.segment_factory import RUN, archive, manifest, recorded, rows, walk

EPISODE = EpisodeId("e1")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PAIRS = LabelsConfig(source="both", pairs=5)


async def played(one: JudgeHarness, segments: int = 6, labels: LabelsConfig = PAIRS, **start: Any) -> Envelope:
    """Judge segments that visit ever more rooms, end their epoch, and return its event."""
    epoch = start.pop("epoch", 0)
    listed = []
    for number in range(segments):
        name = f"s{number}"
        raw = archive(name, {**walk(1 + number), 7: {"rupees": number}}, epoch=epoch)
        await one.runtime.handlers.segment_ready(await recorded(one.store, raw, name, epoch))
        listed.append(reference(name, raw, epoch))
    return await ended(one, listed, epoch, labels, **start)


def reference(name: str, raw: bytes, epoch: int = 0) -> SegmentRef:
    segment = SegmentId(name)
    key = keys.segment(RUN, epoch, EPISODE, segment)
    return SegmentRef(segment=segment, episode=EPISODE, key=key, digest=Digest(sha256(raw)))


async def ended(
    one: JudgeHarness,
    listed: list[SegmentRef],
    epoch: int,
    labels: LabelsConfig,
    created: datetime | None = None,
    **start: Any,
) -> Envelope:
    order = EpochStart(run=RUN, epoch=epoch, fence=1, config=RunConfig(labels=labels), created=NOW, **start)
    await one.store.create(keys.epoch_start(RUN, epoch), order.to_bytes())
    record = EpochFinishedRecord(
        run=RUN,
        epoch=epoch,
        fence=1,
        steps=300,
        episodes=1,
        seconds=1,
        segments=listed,
        checkpoint_key=f"{keys.checkpoint_prefix(RUN, epoch)}all",
        checkpoint_digest=Digest("d" * 64),
        created=created or datetime.now(UTC),
    )
    key = keys.epoch_finished(RUN, epoch)
    digest = Digest(await one.store.create(key, record.to_bytes()))
    data = EpochFinished(run=RUN, epoch=epoch, key=key, digest=digest, segments=len(listed))
    return wrap(data, source="trainer", fence=1)


async def set_run_state(one: JudgeHarness, state: RunState, revision: int) -> None:
    now = datetime.now(UTC)
    record = RunRecord(run=RUN, revision=revision, state=state, config=RunConfig(), created=NOW, updated=now)
    await one.store.create(keys.run_revision(RUN, revision), record.to_bytes())


async def selection(one: JudgeHarness, epoch: int = 0) -> PairSelection:
    return PairSelection.from_bytes(await one.store.get(keys.pair_selection(RUN, epoch)))


async def outcomes(one: JudgeHarness, epoch: int = 0) -> list[PairComparison]:
    return [found.comparison for found in await PairReader(one.store).epoch(RUN, epoch)]


async def audited(one: JudgeHarness, epoch: int = 0) -> int:
    await one.runtime.ledgers.flush()
    key = f"{keys.judge_reports_prefix(RUN, epoch)}judge-0.json"
    return len(LedgerPart.from_bytes(await one.store.get(key)).pairs)


async def test_each_pair_is_compared_in_both_orders_with_its_origin(harness: OpenHarness) -> None:
    one = harness(keep_replies=True)
    await one.runtime.pairs.epoch_finished(await played(one))
    found = await outcomes(one)
    assert len(found) == len((await selection(one)).pairs) == 5
    for comparison in found:
        assert (comparison.judge, comparison.model, comparison.rubric) == ("state", "rules", "default")
        assert comparison.usage.calls == 2
        assert comparison.label is not None
        # Names rise with the rooms that were visited, and the rules prefer more rooms.
        assert comparison.label < 0.5
        assert comparison.forward is not None
        assert comparison.backward is not None
        assert (comparison.forward.second, comparison.backward.first) == (1.0, 1.0)
        kept = JudgeReplies.unpack(await one.store.get(keys.replies(RUN, comparison.forward.prompt)))
        assert '"better": "B"' in kept.replies[0]
        assert "CLIP A" in kept.question


async def test_a_run_that_learns_from_ratings_compares_no_pairs(harness: OpenHarness) -> None:
    one = harness()
    event = await played(one, labels=LabelsConfig())
    before = one.calls
    await one.runtime.pairs.epoch_finished(event)
    assert one.calls == before
    assert not await one.store.exists(keys.pair_selection(RUN, 0))


async def test_a_repeated_event_asks_nothing_and_counts_nothing_twice(harness: OpenHarness) -> None:
    one = harness()
    event = await played(one)
    await one.runtime.pairs.epoch_finished(event)
    first, calls = await outcomes(one), one.calls
    await one.runtime.pairs.epoch_finished(event)
    assert (await outcomes(one), one.calls, await audited(one)) == (first, calls, 5)


async def test_another_process_selects_the_same_pairs(harness: OpenHarness) -> None:
    pairs = []
    for _ in range(2):
        one = harness()
        await one.runtime.pairs.epoch_finished(await played(one, segments=12))
        pairs.append([(pair.first.segment, pair.second.segment) for pair in (await selection(one)).pairs])
    assert pairs[0] == pairs[1]
    assert len({name for pair in pairs[0] for name in pair}) > 4  # spread over the segments


async def test_a_failure_between_two_pairs_loses_and_doubles_none(harness: OpenHarness) -> None:
    one = harness()
    event = await played(one)
    failpoints.arm({failpoints.VARIABLE: "judge.before_pair=error:1"})
    try:
        with pytest.raises(Transient, match=r"judge\.before_pair"):
            await one.runtime.pairs.epoch_finished(event)
        await one.runtime.pairs.epoch_finished(event)
    finally:
        failpoints.arm({})
    assert [found.status for found in await outcomes(one)] == ["judged"] * 5
    assert await audited(one) == 5


async def test_an_absent_route_defers_the_open_pairs(harness: OpenHarness) -> None:
    one = harness()
    event = await played(one, labels=LabelsConfig(source="pairs", pairs=3))
    state = one.runtime.routes["rules-state"].clients
    working = state.transport
    await state.close()
    state.transport = httpx.MockTransport(refuse)
    with pytest.raises(Transient):
        await one.runtime.pairs.epoch_finished(event)
    assert await outcomes(one) == []
    assert len(await PairReader(one.store).open_pairs(RUN, 0) or []) == 3
    await state.close()
    state.transport = working
    await one.runtime.pairs.epoch_finished(event)
    assert len(await outcomes(one)) == 3


async def test_the_answer_before_a_failure_is_not_asked_for_again(harness: OpenHarness) -> None:
    one = harness()
    event = await played(one, labels=LabelsConfig(source="pairs", pairs=1))
    state = one.runtime.routes["rules-state"].clients
    working, asked = state.transport, list[bytes]()
    assert working is not None

    async def second_order_fails(request: httpx.Request) -> httpx.Response:
        asked.append(request.content)
        return refuse(request) if len(asked) in (2, 3) else await working.handle_async_request(request)

    await state.close()
    state.transport = httpx.MockTransport(second_order_fails)
    with pytest.raises(Transient):
        await one.runtime.pairs.epoch_finished(event)
    await one.runtime.pairs.epoch_finished(event)
    (found,) = await outcomes(one)
    assert found.status == "judged"
    assert len(asked) == 4
    assert asked[0] != asked[1] == asked[2] == asked[3], "two attempts, and one after the failure"


async def test_after_the_last_delivery_open_pairs_abstain(harness: OpenHarness) -> None:
    one = harness()
    event = await played(one)
    state = one.runtime.routes["rules-state"].clients
    await state.close()
    state.transport = httpx.MockTransport(refuse)
    with pytest.raises(Transient):
        await one.runtime.pairs.epoch_finished(event)
    await one.runtime.pairs.epoch_dead(event, "the route is away")
    found = await outcomes(one)
    assert [comparison.reasons for comparison in found] == [["given up: the route is away"]] * 5
    assert await PairReader(one.store).open_pairs(RUN, 0) == []


async def test_the_last_delivery_of_a_deleted_run_selects_no_pairs(harness: OpenHarness) -> None:
    one = harness()
    event = await played(one)
    await one.store.put(keys.deleted_run(RUN), RUN.encode())  # the first step of a deletion
    assert await one.runtime.pairs.epoch_dead(event, "the route is away") == []
    assert await PairReader(one.store).selection(RUN, 0) is None


async def test_an_exhausted_budget_lets_the_other_pairs_abstain(harness: OpenHarness) -> None:
    one = harness(budget_calls=6 * 3 + 4)  # the ratings, and two pairs
    await one.runtime.pairs.epoch_finished(await played(one))
    found = await outcomes(one)
    assert [comparison.status for comparison in found].count("judged") == 2
    assert one.calls == 6 * 3 + 4
    refused = next(comparison for comparison in found if comparison.status == "abstained")
    assert refused.reasons == ["the epoch's judge budget of 22 calls is used up"]
    assert refused.label is None


async def test_pairs_wait_for_the_scores_of_their_epoch(harness: OpenHarness) -> None:
    one = harness()
    one.stopping = True
    raw = archive("s0", walk(2))
    await recorded(one.store, raw, "s0")
    event = await ended(one, [reference("s0", raw)], 0, PAIRS)
    with pytest.raises(Transient, match="the service is stopping"):
        await one.runtime.pairs.epoch_finished(event)


async def test_pairs_of_a_stopped_run_are_selected_after_its_resume(harness: OpenHarness) -> None:
    one = harness()
    raw, late = archive("s0", walk(2)), archive("s1", walk(3))
    await one.runtime.handlers.segment_ready(await recorded(one.store, raw, "s0"))
    listed = [reference("s0", raw), reference("s1", late)]
    event = await ended(one, listed, 0, PAIRS, created=NOW)
    await set_run_state(one, "stopped", revision=0)
    await one.runtime.pairs.epoch_finished(event)
    assert not await one.store.exists(keys.pair_selection(RUN, 0)), "a selection among one segment is final"

    await set_run_state(one, "running", revision=1)
    one.stopping = True  # what still waits gives up
    with pytest.raises(Transient, match="the service is stopping"):
        await one.runtime.pairs.epoch_finished(event)
    one.stopping = False
    await one.runtime.handlers.segment_ready(await recorded(one.store, late, "s1"))
    await one.runtime.pairs.epoch_finished(event)
    assert len((await selection(one)).pairs) == 1


async def test_nothing_is_asked_once_the_reward_model_exists(harness: OpenHarness) -> None:
    one = harness()
    event = await played(one)
    await one.store.create(keys.reward_model_card(RUN, 0), b"{}")
    before = one.calls
    await one.runtime.pairs.epoch_finished(event)
    assert one.calls == before
    assert not await one.store.exists(keys.pair_selection(RUN, 0))


async def test_a_gated_judge_compares_no_pairs(harness: OpenHarness) -> None:
    one = harness(gates={"alpha": 0.5})
    closed = JudgeGates(run=RUN, epoch=1, closed={JudgeName("state"): ["alpha 0.10 is below 0.50"]})
    await one.store.create(keys.judge_gates(RUN, 1), closed.to_bytes())
    await one.runtime.pairs.epoch_finished(await played(one, epoch=1))
    found = await selection(one, epoch=1)
    assert found.pairs == []
    assert found.note == "judge state does not count: alpha 0.10 is below 0.50"


async def test_the_members_disagreement_selects_the_pairs(harness: OpenHarness) -> None:
    one = harness()
    model = await stored_model(one)
    listed = []
    for number in range(8):
        name = f"s{number}"
        raw = archive_with_states(name, spread=number / 8)
        await one.runtime.handlers.segment_ready(await recorded(one.store, raw, name, 1))
        listed.append(reference(name, raw, 1))
    event = await ended(one, listed, 1, LabelsConfig(source="pairs", pairs=3), reward_model=model)
    await one.runtime.pairs.epoch_finished(event)
    found = await selection(one, epoch=1)
    assert (found.model, found.note) == (model, None)
    chosen = {(pair.first.segment, pair.second.segment): pair.disagreement for pair in found.pairs}
    assert len(chosen) == 3
    assert all(value is not None and 0 < value <= 0.5 for value in chosen.values())
    # Members differ most about the segments that are farthest from what all of them know, and from each other.
    assert all(abs(int(first[1]) - int(second[1])) >= 4 for first, second in chosen)


async def test_a_lost_model_is_named_and_the_draw_is_random(harness: OpenHarness) -> None:
    one = harness()
    model = await stored_model(one)
    await one.store.delete(model.weights_key)
    await one.runtime.pairs.epoch_finished(await played(one, epoch=1, reward_model=model))
    found = await selection(one, epoch=1)
    assert len(found.pairs) == 5
    assert found.model is None
    assert found.note is not None
    assert found.note.startswith("a random draw: ")


async def stored_model(one: JudgeHarness) -> RewardModelRef:
    """A reward model of epoch 0 with random weights."""
    weights = dump(random_weights(5, seed=1))
    key = keys.reward_model_weights(RUN, 0, sha256(weights))
    await one.store.create(key, weights)
    card = RewardModelCard(
        run=RUN,
        epoch=0,
        observation="obs/v1",
        weights_key=key,
        weights_digest=Digest(sha256(weights)),
        data_digest=Digest("0" * 64),
        ensemble=5,
        segments=9,
        pairs_train=9,
        pairs_heldout=9,
        accuracy=PairAccuracy(),
        gates_passed=True,
        seconds=1,
        created=NOW,
        pooling="gain",
    )
    digest = await one.store.create(keys.reward_model_card(RUN, 0), card.to_bytes())
    return card.reference(keys.reward_model_card(RUN, 0), digest)


def archive_with_states(name: str, spread: float, steps: int = 12) -> bytes:
    """A segment in which one feature rises by `spread`."""
    states = np.zeros((steps + 1, 128), np.float32)
    states[:, 0] = np.linspace(0, spread, steps + 1)
    lines = [json.dumps(row) for row in rows(steps, walk(2, steps))]
    actions = np.zeros(steps, np.uint8)
    content = Members(lines, states, actions, actions[:0], pack_state(b"state"), {})
    return write_segment(manifest(name, epoch=1, steps=steps, key_frames=[]), content)
