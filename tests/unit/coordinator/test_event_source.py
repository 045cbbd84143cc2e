"""What watchers of a run are told, and what becomes of it when the store is away or holds damaged scores."""

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
from shared.store.port import Entry
from tests.unit.coordinator.harness import RUN, Harness, segment

DAMAGED = [b"\xff\xfe\x00 no text", b'{"cut of', b"[]"]


class Moody(MemoryStore):
    """A store that gives no answer to one call; `left` counts down to it."""

    left = -1

    async def list(self, prefix: str) -> list[Entry]:
        self._answer()
        return await super().list(prefix)

    async def get(self, key: str, digest: str | None = None) -> bytes:
        self._answer()
        return await super().get(key, digest)

    def _answer(self) -> None:
        self.left -= 1
        if self.left == -1:
            raise Transient("store: no answer within 15 s")


async def playing(kind: type[MemoryStore] = MemoryStore, **config: object) -> Harness:
    """A run whose first epoch was played."""
    harness = Harness(kind)
    await harness.create_run(**config)
    await harness.passes()
    await harness.train(0)
    return harness


def poller(harness: Harness) -> Poll:
    return RunEventSource(harness.models).poller(RUN)


def states(news: list[RunUpdate]) -> list[str]:
    """The states of the run that were told."""
    return [item.data.partition('"state":"')[2].partition('"')[0] for item in news if item.kind == "run"]


def segments(news: list[RunUpdate]) -> list[str]:
    """The segments whose scores were told."""
    return [SegmentScores.model_validate_json(item.data).segment for item in news if item.kind == "score"]


async def test_wherever_a_look_breaks_off_the_next_one_tells_what_it_found() -> None:
    broken = 0
    while True:
        harness = await playing(Moody, epochs=1)
        store = harness.store
        assert isinstance(store, Moody)
        poll = poller(harness)
        assert states(await poll()) == ["running"]
        await harness.judge(0)
        await harness.train_reward_model(0)
        await harness.passes(2)
        store.left = broken
        try:
            news = await poll()
        except Transient:
            news = await poll()
        assert states(news) == ["finished"], f"call {broken} failed"
        assert segments(news) == [segment(0, number) for number in range(4)]
        if store.left >= 0:
            break
        broken += 1
    assert broken > 4, "a look asks the store more often"


@pytest.mark.parametrize("raw", DAMAGED)
async def test_a_damaged_score_is_left_out_and_told_in_the_log_once(raw: bytes) -> None:
    harness = await playing()
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


async def test_a_damaged_score_leaves_the_stream_alive() -> None:
    harness = await playing(epochs=1)
    harness.broadcaster._interval_s = 0.01
    await harness.judge(0)
    await harness.store.put(keys.score(RUN, 0, segment(0, 4)), DAMAGED[0])
    news = harness.broadcaster.follow(RUN)
    assert states([await anext(news)]) == ["running"]
    await harness.train_reward_model(0)
    await harness.passes(2)
    async with asyncio.timeout(5):
        while states([await anext(news)]) != ["finished"]:
            pass
    await news.aclose()


async def test_a_damaged_progress_holds_back_nothing_else() -> None:
    harness = await playing()
    await harness.judge(0, segments=1)
    await harness.store.put(keys.progress(RUN), DAMAGED[0])
    news = await poller(harness)()
    assert [item.kind for item in news] == ["run", "epoch", "score"]


async def test_whoever_comes_late_sees_the_newest_scores_first_and_then_every_new_one() -> None:
    harness = await playing()
    for number in range(3 * MAX_SCORES):
        await judge(harness, number)
    poll = poller(harness)
    assert segments(await poll()) == [segment(0, number) for number in range(2 * MAX_SCORES, 3 * MAX_SCORES)]
    assert segments(await poll()) == []
    await judge(harness, 3 * MAX_SCORES)
    assert segments(await poll()) == [segment(0, 3 * MAX_SCORES)]


async def test_a_burst_of_scores_is_told_in_several_looks_and_completely() -> None:
    harness = await playing()
    poll = poller(harness)
    assert segments(await poll()) == []
    for number in range(MAX_SCORES + 10):
        await judge(harness, number)
    told = [segments(await poll()) for _ in range(3)]
    assert [len(part) for part in told] == [MAX_SCORES, 10, 0]
    assert [*told[0], *told[1]] == [segment(0, number) for number in range(MAX_SCORES + 10)]


async def judge(harness: Harness, number: int) -> None:
    harness.time += timedelta(seconds=1)
    scores = harness.scores(0, number)
    await harness.store.create(keys.score(RUN, 0, scores.segment), scores.to_bytes())
