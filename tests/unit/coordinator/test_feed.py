"""The live stream of a long run: whoever comes, and however slowly it reads, it learns where everything stands."""

import asyncio
from collections.abc import Awaitable, Callable

from structlog.testing import capture_logs

from services.coordinator.adapters.feed import LAG, Feed, News
from shared.contracts.ids import RunId
from shared.errors import Transient
from tests.unit.coordinator.world import RUN

EPOCHS = 230  # more than any bound of the feed


class Source:
    """Looks that a test fills."""

    def __init__(self) -> None:
        self.news: list[News] = []
        self.looked = asyncio.Event()
        self.trouble: list[Exception] = []

    def look(self, _: RunId) -> Callable[[], Awaitable[list[News]]]:
        async def found() -> list[News]:
            news, self.news = self.news, []
            self.looked.set()
            if self.trouble:
                raise self.trouble.pop(0)
            return news

        return found

    async def tell(self, *news: News) -> None:
        """Have the feed look at these."""
        self.news = list(news)
        self.looked.clear()
        await self.looked.wait()


def epoch(number: int, says: str = "") -> News:
    return News("epoch", f"{number}{says}", str(number))


def score(number: int) -> News:
    return News("score", str(number), f"segment {number}")


BACKLOG = [News("run", "running"), *(epoch(number) for number in range(EPOCHS)), News("progress", "playing")]


async def read(feed: Feed) -> list[News]:
    """What a reader gets until nothing more comes."""
    got: list[News] = []
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
    feed = Feed(source.look, interval_s=0.001)
    stays = feed.follow(RUN)
    assert await anext(stays) == BACKLOG[0]
    for _ in range(2):
        assert await read(feed) == [*BACKLOG, *map(score, range(30))]
    assert [await anext(stays) for _ in BACKLOG[1:]] == BACKLOG[1:]
    await stays.aclose()


async def test_a_reader_that_sleeps_finds_the_newest_of_each_thing_and_ends_nobodys_stream() -> None:
    source = Source()
    source.news = list(BACKLOG)
    feed = Feed(source.look, interval_s=0.001)
    sleeper = feed.follow(RUN)
    await anext(sleeper)
    await source.tell(News("run", "stopping"), *(epoch(number, "!") for number in range(EPOCHS)))
    await source.tell(News("run", "stopped"), *map(score, range(LAG + 50)))
    assert News("run", "stopped") in await read(feed)
    got = [await anext(sleeper) for _ in range(1 + EPOCHS + 1 + LAG)]
    assert [news for news in got if news.kind == "run"] == [News("run", "stopped")]
    assert {news.data for news in got if news.kind == "epoch"} == {f"{number}!" for number in range(EPOCHS)}
    assert [news for news in got if news.kind == "score"] == [score(number) for number in range(50, LAG + 50)]
    await sleeper.aclose()


async def test_whatever_a_look_runs_into_the_next_ones_go_on_and_the_log_says_it_once() -> None:
    source = Source()
    source.trouble = [*[Transient("store: no answer")] * 3, *[ValueError("our own mistake")] * 3]
    feed = Feed(source.look, interval_s=0.001)
    stream = feed.follow(RUN)
    with capture_logs() as logs:
        reader = asyncio.ensure_future(anext(stream))
        for _ in range(len(source.trouble) + 1):
            await source.tell()
        await source.tell(News("run", "running"))
        assert await asyncio.wait_for(reader, 5) == News("run", "running")
    await stream.aclose()
    told = [(line["error"], line["exc_info"]) for line in logs if line["event"] == "no news"]
    assert told == [("store: no answer", False), ("our own mistake", True)]


async def test_whoever_comes_after_a_change_is_not_told_how_it_was_before_though_somebody_else_watches() -> None:
    source = Source()
    source.news = [News("run", "stopped")]
    feed = Feed(source.look, interval_s=0.001)
    stays = feed.follow(RUN)
    assert await anext(stays) == News("run", "stopped")
    comes = feed.follow(RUN)
    source.news = [News("run", "running")]  # a person has resumed it, and no look has seen that yet
    assert await anext(comes) == News("run", "running")
    assert await anext(stays) == News("run", "running")
    await comes.aclose()
    await stays.aclose()
