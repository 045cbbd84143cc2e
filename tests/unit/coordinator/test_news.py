"""What watchers of a run are told, and what becomes of it when the store is away or holds damaged scores."""

import asyncio
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from services.coordinator.adapters.feed import News
from services.coordinator.adapters.news import AT_ONCE, Newsroom
from shared.contracts.scores import SegmentScores
from shared.errors import Transient
from shared.store import keys
from shared.store.memory import MemoryStore
from shared.store.port import Entry
from tests.unit.coordinator.world import RUN, World, segment

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


async def playing(kind: type[MemoryStore] = MemoryStore, **config: object) -> World:
    """A run whose first epoch was played."""
    world = World(kind)
    await world.ask(**config)
    await world.rounds()
    await world.train(0)
    return world


def newsroom(world: World) -> Newsroom:
    return Newsroom(world.store, world.desk.runs, world.desk.views, world.desk.reporter)


def states(news: list[News]) -> list[str]:
    """The states of the run that were told."""
    return [item.data.partition('"state":"')[2].partition('"')[0] for item in news if item.kind == "run"]


def segments(news: list[News]) -> list[str]:
    """The segments whose scores were told."""
    return [SegmentScores.model_validate_json(item.data).segment for item in news if item.kind == "score"]


async def test_wherever_a_look_breaks_off_the_next_one_tells_what_it_found() -> None:
    broken = 0
    while True:
        world = await playing(Moody, epochs=1)
        store = world.store
        assert isinstance(store, Moody)
        look = newsroom(world).look(RUN)
        assert states(await look()) == ["running"]
        await world.judge(0)
        await world.train_reward_model(0)
        await world.rounds(2)
        store.left = broken
        try:
            news = await look()
        except Transient:
            news = await look()
        assert states(news) == ["finished"], f"call {broken} failed"
        assert segments(news) == [segment(0, number) for number in range(4)]
        if store.left >= 0:
            break
        broken += 1
    assert broken > 4, "a look asks the store more often"


@pytest.mark.parametrize("raw", DAMAGED)
async def test_a_damaged_score_is_left_out_and_told_in_the_log_once(raw: bytes) -> None:
    world = await playing()
    await world.judge(0, segments=2)
    await world.store.put(keys.score(RUN, 0, segment(0, 2)), raw)
    look = newsroom(world).look(RUN)
    with capture_logs() as logs:
        assert segments(await look()) == [segment(0, 0), segment(0, 1)]
    assert {line["key"] for line in logs} == {keys.score(RUN, 0, segment(0, 2))}
    with capture_logs() as logs:
        await judge(world, 3)
        assert segments(await look()) == [segment(0, 3)]
    assert logs == []


async def test_a_damaged_score_leaves_the_stream_alive() -> None:
    world = await playing(epochs=1)
    world.desk.feed._interval_s = 0.01
    await world.judge(0)
    await world.store.put(keys.score(RUN, 0, segment(0, 4)), DAMAGED[0])
    news = world.desk.feed.follow(RUN)
    assert states([await anext(news)]) == ["running"]
    await world.train_reward_model(0)
    await world.rounds(2)
    async with asyncio.timeout(5):
        while states([await anext(news)]) != ["finished"]:
            pass
    await news.aclose()


async def test_a_damaged_progress_holds_back_nothing_else() -> None:
    world = await playing()
    await world.judge(0, segments=1)
    await world.store.put(keys.progress(RUN), DAMAGED[0])
    news = await newsroom(world).look(RUN)()
    assert [item.kind for item in news] == ["run", "epoch", "score"]


async def test_whoever_comes_late_sees_the_newest_scores_first_and_then_every_new_one() -> None:
    world = await playing()
    for number in range(3 * AT_ONCE):
        await judge(world, number)
    look = newsroom(world).look(RUN)
    assert segments(await look()) == [segment(0, number) for number in range(2 * AT_ONCE, 3 * AT_ONCE)]
    assert segments(await look()) == []
    await judge(world, 3 * AT_ONCE)
    assert segments(await look()) == [segment(0, 3 * AT_ONCE)]


async def test_a_burst_of_scores_is_told_in_several_looks_and_completely() -> None:
    world = await playing()
    look = newsroom(world).look(RUN)
    assert segments(await look()) == []
    for number in range(AT_ONCE + 10):
        await judge(world, number)
    told = [segments(await look()) for _ in range(3)]
    assert [len(part) for part in told] == [AT_ONCE, 10, 0]
    assert [*told[0], *told[1]] == [segment(0, number) for number in range(AT_ONCE + 10)]


async def judge(world: World, number: int) -> None:
    world.time += timedelta(seconds=1)
    scores = world.scores(0, number)
    await world.store.create(keys.score(RUN, 0, scores.segment), scores.to_bytes())
