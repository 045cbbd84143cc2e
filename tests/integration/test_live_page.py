"""The live page in a real browser, on the real interface over a memory store: what people see when streams break."""

import re
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright, expect

from services.coordinator.api.app import create_app
from services.coordinator.tokens import Tokens
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig, RunRecord
from shared.errors import Transient
from shared.runtime.health import Health, listen, serving
from shared.store import keys
from shared.store.port import Entry
from tests.servers import free_ports
from tests.unit.coordinator.world import RUN, SHORT, World, segment

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
OTHER = RunId("another")
OLD, NEW = "viewer-token-0123456789", "another-token-0123456789"


class Coordinator:
    """The interface of a world on a port. It can be started again, which breaks every stream."""

    def __init__(self, folder: Path) -> None:
        self.world, self.port = World(), free_ports(1)[0]
        self.tokens = folder / "tokens"
        self.tokens.write_text(f"viewer:{OLD}\n")
        self._up = AsyncExitStack()

    async def start(self) -> None:
        """Serve, with streams that begin afresh."""
        await self._up.aclose()
        app = create_app(self.world.desk, Tokens(self.tokens), requests_per_s=1_000, burst=1_000)
        await self._up.enter_async_context(serving(Health(app=app), listen("127.0.0.1", self.port)))

    async def stop(self) -> None:
        await self._up.aclose()

    async def ask(self, run: RunId) -> None:
        """Somebody starts one more run."""
        config, now = RunConfig.model_validate(SHORT), self.world.time
        record = RunRecord(run=run, revision=0, state="created", config=config, created=now, updated=now)
        await self.world.desk.runs.create(record)

    async def judge(self, number: int) -> None:
        """One more segment of epoch 0 is judged."""
        self.world.time = self.world.time.replace(minute=number)
        scores = self.world.scores(0, number)
        await self.world.store.create(keys.score(RUN, 0, scores.segment), scores.to_bytes())


@asynccontextmanager
async def watched(folder: Path) -> AsyncIterator[tuple[Coordinator, Page]]:
    """A run with three judged segments, and a browser that shows it."""
    coordinator = Coordinator(folder)
    await coordinator.world.ask()
    await coordinator.world.rounds()
    await coordinator.world.train(0)
    for number in range(3):
        await coordinator.judge(number)
    await coordinator.world.rounds()
    await coordinator.start()
    async with async_playwright() as browsers:
        browser = await browsers.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = await browser.new_page()
        await page.goto(f"http://127.0.0.1:{coordinator.port}/#token={OLD}")
        try:
            yield coordinator, page
        finally:
            await browser.close()
            await coordinator.stop()


async def no_answer(prefix: str) -> list[Entry]:
    """What a store says that is away."""
    raise Transient("store: no answer within 15 s")


async def sees(page: Page, *numbers: int) -> None:
    """The page lists the votes on these segments and on no others, in this order."""
    wanted = [re.compile(segment(0, number)) for number in numbers]
    await expect(page.locator("#votes > li > div")).to_have_text(wanted, timeout=15_000)


async def test_after_a_broken_stream_every_vote_is_listed_once_newest_first(tmp_path: Path) -> None:
    async with watched(tmp_path) as (coordinator, page):
        await sees(page, 2, 1, 0)
        await coordinator.start()
        await coordinator.judge(3)
        await sees(page, 3, 2, 1, 0)


async def test_whoever_enters_the_new_token_sees_the_run_go_on(tmp_path: Path) -> None:
    async with watched(tmp_path) as (coordinator, page):
        await sees(page, 2, 1, 0)
        coordinator.tokens.write_text(f"viewer:{NEW}\n")
        await coordinator.start()
        await expect(page.locator("#refused")).to_have_text("The token is not known any more.", timeout=15_000)
        await expect(page.locator("#page")).to_be_hidden()
        await page.fill("#token", NEW)
        await page.click("#door button")
        await expect(page.locator("#page")).to_be_visible()
        await expect(page.locator("#door")).to_be_hidden()
        await coordinator.judge(3)
        await sees(page, 3, 2, 1, 0)


async def test_of_another_run_nothing_is_shown_that_belongs_to_the_one_before(tmp_path: Path) -> None:
    async with watched(tmp_path) as (coordinator, page):
        await sees(page, 2, 1, 0)
        await expect(page.locator("#epochs tr")).to_have_count(1)
        await expect(page.locator("#milestones circle, #scores circle")).not_to_have_count(0)
        await coordinator.ask(OTHER)
        await page.select_option("#runs", OTHER, timeout=15_000)
        await expect(page.locator("#state")).to_have_text("created", timeout=15_000)
        await expect(page.locator("#epochs tr, .charts circle, #figures div, #timeline span")).to_have_count(0)
        await expect(page.locator("#doing")).to_be_empty()


async def test_a_run_that_two_hundred_others_have_followed_is_still_shown_to_who_asks_for_it(tmp_path: Path) -> None:
    async with watched(tmp_path) as (coordinator, page):
        await sees(page, 2, 1, 0)
        for number in range(200):
            await coordinator.ask(RunId(f"later-{number}"))
        await expect(page.locator("#runs option")).to_have_count(201, timeout=15_000)
        await expect(page.locator("#runs")).to_have_value(RUN)
        await page.reload()  # the address names it
        await sees(page, 2, 1, 0)


async def test_a_page_that_is_opened_while_the_store_is_away_opens_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with watched(tmp_path) as (coordinator, page):
        await sees(page, 2, 1, 0)
        with monkeypatch.context() as away:
            away.setattr(coordinator.world.store, "list", no_answer)
            await page.reload()
            await expect(page.locator("#refused")).to_contain_text("503", timeout=15_000)
            await page.click("#door button")  # nobody has typed anything
            await expect(page.locator("#refused")).to_contain_text("503", timeout=15_000)
        await expect(page.locator("#page")).to_be_visible(timeout=15_000)
        await sees(page, 2, 1, 0)


async def test_the_age_of_news_does_not_hang_on_the_clock_of_whoever_looks(tmp_path: Path) -> None:
    async with watched(tmp_path) as (coordinator, page):
        now = coordinator.world.time = datetime.now(UTC)
        await coordinator.world.rounds(seconds=0)
        await page.clock.install(time=now + timedelta(hours=1))
        await page.reload()
        await sees(page, 2, 1, 0)
        await expect(page.locator("#age")).to_have_text(re.compile(r"^last update \d{1,2} s ago$"), timeout=15_000)
