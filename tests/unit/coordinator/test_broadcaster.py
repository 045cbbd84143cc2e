"""The live stream of a long run: whoever comes, and however slowly it reads, it learns where everything stands."""

import asyncio
from collections.abc import Awaitable, Callable

from structlog.testing import capture_logs

from services.coordinator.live.broadcaster import MAX_BACKLOG, EventBroadcaster, RunUpdate
from shared.contracts.ids import RunId
from shared.errors import Transient
from tests.unit.coordinator.harness import RUN

EPOCHS = 230  # more than any bound of the feed


class Source:
    """Looks that a test fills."""

    def __init__(self) -> None:
        self.news: list[RunUpdate] = []
        self.polled = asyncio.Event()
        self.trouble: list[Exception] = []

    def poller(self, _: RunId) -> Callable[[], Awaitable[list[RunUpdate]]]:
        async def found() -> list[RunUpdate]:
            news, self.news = self.news, []
            self.polled.set()
            if self.trouble:
                raise self.trouble.pop(0)
            return news

        return found

    async def tell(self, *news: RunUpdate) -> None:
        """Have the feed look at these."""
        self.news = list(news)
        self.polled.clear()
        await self.polled.wait()


def epoch(number: int, says: str = "") -> RunUpdate:
    return RunUpdate("epoch", f"{number}{says}", str(number))


def score(number: int) -> RunUpdate:
    return RunUpdate("score", str(number), f"segment {number}")


BACKLOG = [RunUpdate("run", "running"), *(epoch(number) for number in range(EPOCHS)), RunUpdate("progress", "playing")]


async def read(feed: EventBroadcaster) -> list[RunUpdate]:
    """What a reader gets until nothing more comes."""
    got: list[RunUpdate] = []
    stream = feed.follow(RUN)
    try:
        while True:
            got.append(await asyncio.wait_for(anext(stream), 0.2))
    except TimeoutError:
        return got
    finally:
        await stream.aclose()


async def test_every_reader_of_a_long_run_gets_all_that_is_known() -> None:
    source = Source()
    source.news = [*BACKLOG, *map(score, range(30))]
    feed = EventBroadcaster(source.poller, interval_s=0.001)
    stays = feed.follow(RUN)
    assert await anext(stays) == BACKLOG[0]
    for _ in range(2):
        assert await read(feed) == [*BACKLOG, *map(score, range(30))]
    assert [await anext(stays) for _ in BACKLOG[1:]] == BACKLOG[1:]
    await stays.aclose()


async def test_a_reader_that_sleeps_finds_the_newest_of_each_thing_and_ends_nobodys_stream() -> None:
    source = Source()
    source.news = list(BACKLOG)
    feed = EventBroadcaster(source.poller, interval_s=0.001)
    sleeper = feed.follow(RUN)
    await anext(sleeper)
    await source.tell(RunUpdate("run", "stopping"), *(epoch(number, "!") for number in range(EPOCHS)))
    await source.tell(RunUpdate("run", "stopped"), *map(score, range(MAX_BACKLOG + 50)))
    assert RunUpdate("run", "stopped") in await read(feed)
    got = [await anext(sleeper) for _ in range(1 + EPOCHS + 1 + MAX_BACKLOG)]
    assert [news for news in got if news.kind == "run"] == [RunUpdate("run", "stopped")]
    assert {news.data for news in got if news.kind == "epoch"} == {f"{number}!" for number in range(EPOCHS)}
    assert [news for news in got if news.kind == "score"] == [score(number) for number in range(50, MAX_BACKLOG + 50)]
    await sleeper.aclose()


async def test_whatever_a_look_runs_into_the_next_ones_go_on_and_the_log_says_it_once() -> None:
    source = Source()
    source.trouble = [*[Transient("store: no answer")] * 3, *[ValueError("our own mistake")] * 3]
    feed = EventBroadcaster(source.poller, interval_s=0.001)
    stream = feed.follow(RUN)
    with capture_logs() as logs:
        reader = asyncio.ensure_future(anext(stream))
        for _ in range(len(source.trouble) + 1):
            await source.tell()
        await source.tell(RunUpdate("run", "running"))
        assert await asyncio.wait_for(reader, 5) == RunUpdate("run", "running")
    await stream.aclose()
    told = [(line["error"], line["exc_info"]) for line in logs if line["event"] == "live poll failed"]
    assert told == [("store: no answer", False), ("our own mistake", True)]


async def test_whoever_comes_after_a_change_is_not_told_how_it_was_before_though_somebody_else_watches() -> None:
    source = Source()
    source.news = [RunUpdate("run", "stopped")]
    feed = EventBroadcaster(source.poller, interval_s=0.001)
    stays = feed.follow(RUN)
    assert await anext(stays) == RunUpdate("run", "stopped")
    comes = feed.follow(RUN)
    source.news = [RunUpdate("run", "running")]  # a person has resumed it, and no look has seen that yet
    assert await anext(comes) == RunUpdate("run", "running")
    assert await anext(stays) == RunUpdate("run", "running")
    await comes.aclose()
    await stays.aclose()
