"""The updates of a run, also when the store fails or holds damaged scores."""

import asyncio
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from services.coordinator.live.broadcaster import Poll, RunUpdate
from services.coordinator.live.event_source import MAX_SCORES, RunEventSource
from shared.contracts.scores import SegmentScores
from shared.errors import Transient
from shared.store import keys
from shared.store.memory import MemoryStore
from shared.store.port import ObjectEntry
from tests.unit.coordinator.harness import RUN, Harness, segment

DAMAGED = [b"\xff\xfe\x00 no text", b'{"cut of', b"[]"]


class FlakyStore(MemoryStore):
    """A store that fails one call: the one after `left` others."""

    left = -1

    async def list(self, prefix: str) -> list[ObjectEntry]:
        self._fail_in_turn()
        return await super().list(prefix)

    async def get(self, key: str, digest: str | None = None) -> bytes:
        self._fail_in_turn()
        return await super().get(key, digest)

    def _fail_in_turn(self) -> None:
        self.left -= 1
        if self.left == -1:
            raise Transient("store: no answer within 15 s")


async def finished_epoch(kind: type[MemoryStore] = MemoryStore, **config: object) -> Harness:
    """A run whose first epoch is finished."""
    harness = Harness(kind)
    await harness.create_run(**config)
    await harness.passes()
    await harness.train(0)
    return harness


def poller(harness: Harness) -> Poll:
    return RunEventSource(harness.models).poller(RUN)


def states(updates: list[RunUpdate]) -> list[str]:
    """The states of the run in these updates."""
    return [item.data.partition('"state":"')[2].partition('"')[0] for item in updates if item.kind == "run"]


def segments(updates: list[RunUpdate]) -> list[str]:
    """The segments whose scores are in these updates."""
    return [SegmentScores.model_validate_json(item.data).segment for item in updates if item.kind == "score"]


async def test_the_next_poll_returns_everything_a_failed_one_found() -> None:
    broken = 0
    while True:
        harness = await finished_epoch(FlakyStore, epochs=1)
        store = harness.store
        assert isinstance(store, FlakyStore)
        poll = poller(harness)
        assert states(await poll()) == ["running"]
        await harness.judge(0)
        await harness.train_reward_model(0)
        await harness.passes(2)
        store.left = broken
        try:
            updates = await poll()
        except Transient:
            updates = await poll()
        assert states(updates) == ["finished"], f"call {broken} failed"
        assert segments(updates) == [segment(0, number) for number in range(4)]
        if store.left >= 0:
            break
        broken += 1
    assert broken > 4, "a poll calls the store more often"


@pytest.mark.parametrize("raw", DAMAGED)
async def test_a_damaged_score_is_skipped_and_logged_once(raw: bytes) -> None:
    harness = await finished_epoch()
    await harness.judge(0, segments=2)
    await harness.store.put(keys.score(RUN, 0, segment(0, 2)), raw)
    poll = poller(harness)
    with capture_logs() as logs:
        assert segments(await poll()) == [segment(0, 0), segment(0, 1)]
    assert {line["key"] for line in logs} == {keys.score(RUN, 0, segment(0, 2))}
    with capture_logs() as logs:
        await judge(harness, 3)
        assert segments(await poll()) == [segment(0, 3)]
    assert logs == []


async def test_a_damaged_score_does_not_end_the_stream() -> None:
    harness = await finished_epoch(epochs=1)
    harness.broadcaster._interval_s = 0.01
    await harness.judge(0)
    await harness.store.put(keys.score(RUN, 0, segment(0, 4)), DAMAGED[0])
    updates = harness.broadcaster.follow(RUN)
    assert states([await anext(updates)]) == ["running"]
    await harness.train_reward_model(0)
    await harness.passes(2)
    async with asyncio.timeout(5):
        while states([await anext(updates)]) != ["finished"]:
            pass
    await updates.aclose()


async def test_a_damaged_progress_document_is_skipped() -> None:
    harness = await finished_epoch()
    await harness.judge(0, segments=1)
    await harness.store.put(keys.progress(RUN), DAMAGED[0])
    updates = await poller(harness)()
    assert [item.kind for item in updates] == ["run", "epoch", "score"]


async def test_a_late_reader_gets_the_newest_scores_then_every_new_one() -> None:
    harness = await finished_epoch()
    for number in range(3 * MAX_SCORES):
        await judge(harness, number)
    poll = poller(harness)
    assert segments(await poll()) == [segment(0, number) for number in range(2 * MAX_SCORES, 3 * MAX_SCORES)]
    assert segments(await poll()) == []
    await judge(harness, 3 * MAX_SCORES)
    assert segments(await poll()) == [segment(0, 3 * MAX_SCORES)]


async def test_a_burst_of_scores_takes_several_polls_and_loses_none() -> None:
    harness = await finished_epoch()
    poll = poller(harness)
    assert segments(await poll()) == []
    for number in range(MAX_SCORES + 10):
        await judge(harness, number)
    parts = [segments(await poll()) for _ in range(3)]
    assert [len(part) for part in parts] == [MAX_SCORES, 10, 0]
    assert [*parts[0], *parts[1]] == [segment(0, number) for number in range(MAX_SCORES + 10)]


async def judge(harness: Harness, number: int) -> None:
    harness.time += timedelta(seconds=1)
    scores = harness.scores(0, number)
    await harness.store.create(keys.score(RUN, 0, scores.segment), scores.to_bytes())
