"""The live stream of a long run: every reader, early, late or slow, gets the current state."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

from structlog.testing import capture_logs

from services.coordinator.live.broadcaster import MAX_BACKLOG, EventBroadcaster, Poll, RunUpdate
from shared.contracts.ids import RunId
from shared.errors import Transient
from shared.store.port import NotFound
from tests.unit.coordinator.harness import RUN

EPOCHS = 230  # more than any bound of the broadcaster


class Source:
    """Polls whose result the test sets."""

    def __init__(self) -> None:
        self.updates: list[RunUpdate] = []
        self.polled = asyncio.Event()
        self.errors: list[Exception] = []

    def poller(self, _: RunId) -> Callable[[], Awaitable[list[RunUpdate]]]:
        async def poll() -> list[RunUpdate]:
            updates, self.updates = self.updates, []
            self.polled.set()
            if self.errors:
                raise self.errors.pop(0)
            return updates

        return poll

    async def push(self, *updates: RunUpdate) -> None:
        """Return these updates from the next poll."""
        self.updates = list(updates)
        self.polled.clear()
        await self.polled.wait()


def epoch(number: int, suffix: str = "") -> RunUpdate:
    return RunUpdate("epoch", f"{number}{suffix}", str(number))


def score(number: int) -> RunUpdate:
    return RunUpdate("score", str(number), f"segment {number}")


BACKLOG = [RunUpdate("run", "running"), *(epoch(number) for number in range(EPOCHS)), RunUpdate("progress", "playing")]


async def read(broadcaster: EventBroadcaster) -> list[RunUpdate]:
    """All updates a new reader gets, until none comes for 0.2 s."""
    got: list[RunUpdate] = []
    stream = broadcaster.follow(RUN)
    try:
        while True:
            got.append(await asyncio.wait_for(anext(stream), 0.2))
    except TimeoutError:
        return got
    finally:
        await stream.aclose()


async def test_every_reader_of_a_long_run_gets_its_full_state() -> None:
    source = Source()
    source.updates = [*BACKLOG, *map(score, range(30))]
    broadcaster = EventBroadcaster(source.poller, interval_s=0.001)
    first_reader = broadcaster.follow(RUN)
    assert await anext(first_reader) == BACKLOG[0]
    for _ in range(2):
        assert await read(broadcaster) == [*BACKLOG, *map(score, range(30))]
    assert [await anext(first_reader) for _ in BACKLOG[1:]] == BACKLOG[1:]
    await first_reader.aclose()


async def test_a_slow_reader_gets_the_newest_updates_and_delays_no_other() -> None:
    source = Source()
    source.updates = list(BACKLOG)
    broadcaster = EventBroadcaster(source.poller, interval_s=0.001)
    slow_reader = broadcaster.follow(RUN)
    await anext(slow_reader)
    await source.push(RunUpdate("run", "stopping"), *(epoch(number, "!") for number in range(EPOCHS)))
    await source.push(RunUpdate("run", "stopped"), *map(score, range(MAX_BACKLOG + 50)))
    assert RunUpdate("run", "stopped") in await read(broadcaster)
    got = [await anext(slow_reader) for _ in range(1 + EPOCHS + 1 + MAX_BACKLOG)]
    assert [update for update in got if update.kind == "run"] == [RunUpdate("run", "stopped")]
    assert {update.data for update in got if update.kind == "epoch"} == {f"{number}!" for number in range(EPOCHS)}
    assert [update for update in got if update.kind == "score"] == [
        score(number) for number in range(50, MAX_BACKLOG + 50)
    ]
    await slow_reader.aclose()


async def test_a_failing_poll_is_logged_once_and_polling_continues() -> None:
    source = Source()
    source.errors = [*[Transient("store: no answer")] * 3, *[ValueError("unexpected")] * 3]
    broadcaster = EventBroadcaster(source.poller, interval_s=0.001)
    stream = broadcaster.follow(RUN)
    with capture_logs() as logs:
        reader = asyncio.ensure_future(anext(stream))
        for _ in range(len(source.errors) + 1):
            await source.push()
        await source.push(RunUpdate("run", "running"))
        assert await asyncio.wait_for(reader, 5) == RunUpdate("run", "running")
    await stream.aclose()
    logged = [(line["error"], line["exc_info"]) for line in logs if line["event"] == "live poll failed"]
    assert logged == [("store: no answer", False), ("unexpected", True)]


async def test_a_slow_poll_makes_long_pauses_but_no_new_reader_waits_for_them() -> None:
    source, polls = Source(), 0

    def slow(run: RunId) -> Poll:
        poll = source.poller(run)

        async def slow_poll() -> list[RunUpdate]:
            nonlocal polls
            polls += 1
            await asyncio.sleep(0.05)
            return await poll()

        return slow_poll

    source.updates = [RunUpdate("run", "running")]
    broadcaster = EventBroadcaster(slow, interval_s=0.001)
    first_reader = broadcaster.follow(RUN)
    assert await anext(first_reader) == RunUpdate("run", "running")
    await asyncio.sleep(0.6)
    assert polls == 1  # a pause is forty times as long as its poll
    second_reader = broadcaster.follow(RUN)
    assert await asyncio.wait_for(anext(second_reader), 1) == RunUpdate("run", "running")
    assert polls == 2
    await second_reader.aclose()
    await first_reader.aclose()


async def test_a_new_reader_does_not_get_an_outdated_state() -> None:
    source = Source()
    source.updates = [RunUpdate("run", "stopped")]
    broadcaster = EventBroadcaster(source.poller, interval_s=0.001)
    first_reader = broadcaster.follow(RUN)
    assert await anext(first_reader) == RunUpdate("run", "stopped")
    second_reader = broadcaster.follow(RUN)
    source.updates = [RunUpdate("run", "running")]  # it was resumed after the last poll
    assert await anext(second_reader) == RunUpdate("run", "running")
    assert await anext(first_reader) == RunUpdate("run", "running")
    await second_reader.aclose()
    await first_reader.aclose()


async def test_a_deleted_run_ends_its_streams() -> None:
    source = Source()
    source.updates = [RunUpdate("run", "stopped")]
    broadcaster = EventBroadcaster(source.poller, interval_s=0.001)
    reader = broadcaster.follow(RUN)
    assert await anext(reader) == RunUpdate("run", "stopped")
    source.errors = [NotFound("There is no run 'demo': see GET /runs.")]
    assert [update async for update in _until(reader, 5)] == []
    source.updates = [RunUpdate("run", "created")]  # a reader that comes now polls again
    again = broadcaster.follow(RUN)
    assert await asyncio.wait_for(anext(again), 5) == RunUpdate("run", "created")
    await reader.aclose()  # the end of an old reader leaves the new channel open
    source.updates = [RunUpdate("run", "running")]
    assert await asyncio.wait_for(anext(again), 5) == RunUpdate("run", "running")
    await again.aclose()


async def _until(reader: AsyncGenerator[RunUpdate, None], seconds: float) -> AsyncIterator[RunUpdate]:
    """The updates of a stream that must end within this time."""
    async with asyncio.timeout(seconds):
        async for update in reader:
            yield update


async def test_a_poll_ends_although_its_last_reader_has_just_come() -> None:
    source = Source()
    broadcaster = EventBroadcaster(source.poller, interval_s=0.01)
    first = broadcaster.follow(RUN)
    source.updates = [RunUpdate("run", "running")]
    await anext(first)
    watching = broadcaster._channels[RUN].task
    await asyncio.sleep(0.05)  # it waits for new readers, or for the next poll
    last = broadcaster.follow(RUN)
    broadcaster._interval_s = 60.0
    coming = asyncio.ensure_future(anext(last))
    await asyncio.sleep(0)  # its step wakes the poll, which is cancelled before it runs
    closing = asyncio.ensure_future(first.aclose())
    coming.cancel()
    await asyncio.gather(coming, closing, return_exceptions=True)
    _, running = await asyncio.wait({watching}, timeout=1.0)
    for task in running:
        task.cancel()
    assert not running
