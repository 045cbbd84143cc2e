"""The live page in a real browser, on the real interface over a memory store, with broken streams."""

import re
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright, expect

from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig, RunRecord
from shared.errors import Transient
from shared.runtime.health import Health, listen, serve
from shared.store import keys
from shared.store.port import ObjectEntry
from tests.servers import free_ports
from tests.unit.coordinator.harness import RUN, SHORT_RUN, Harness, segment

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
OTHER_RUN = RunId("another")
OLD_TOKEN, NEW_TOKEN = "viewer-token-0123456789", "another-token-0123456789"


class Coordinator:
    """The REST interface of a harness on a port. A restart breaks every stream."""

    def __init__(self, folder: Path) -> None:
        self.harness, self.port = Harness(), free_ports(1)[0]
        self.tokens = folder / "tokens"
        self.tokens.write_text(f"viewer:{OLD_TOKEN}\n")
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        """Serve; an earlier server and its streams end."""
        await self._stack.aclose()
        app = self.harness.app(self.tokens)
        await self._stack.enter_async_context(serve(Health(app=app), listen("127.0.0.1", self.port)))

    async def stop(self) -> None:
        await self._stack.aclose()

    async def create_run(self, run: RunId) -> None:
        """Create one more run."""
        config, now = RunConfig.model_validate(SHORT_RUN), self.harness.time
        record = RunRecord(run=run, revision=0, state="created", config=config, created=now, updated=now)
        await self.harness.models.runs.create(record)

    async def judge(self, number: int) -> None:
        """Write the scores of one more segment of epoch 0."""
        self.harness.time = self.harness.time.replace(minute=number)
        scores = self.harness.scores(0, number)
        await self.harness.store.create(keys.score(RUN, 0, scores.segment), scores.to_bytes())


@asynccontextmanager
async def open_page(folder: Path) -> AsyncIterator[tuple[Coordinator, Page]]:
    """A run with three judged segments, and a browser page that shows it."""
    coordinator = Coordinator(folder)
    await coordinator.harness.create_run()
    await coordinator.harness.passes()
    await coordinator.harness.train(0)
    for number in range(3):
        await coordinator.judge(number)
    await coordinator.harness.passes()
    await coordinator.start()
    async with async_playwright() as browsers:
        browser = await browsers.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = await browser.new_page()
        await page.goto(f"http://127.0.0.1:{coordinator.port}/#token={OLD_TOKEN}")
        try:
            yield coordinator, page
        finally:
            await browser.close()
            await coordinator.stop()


async def unavailable(prefix: str) -> list[ObjectEntry]:
    """A listing while the store is away."""
    raise Transient("store: no answer within 15 s")


async def expect_votes(page: Page, *numbers: int) -> None:
    """The page lists the votes on exactly these segments, in this order."""
    wanted = [re.compile(segment(0, number)) for number in numbers]
    await expect(page.locator("#votes > li > div")).to_have_text(wanted, timeout=15_000)


async def test_a_broken_stream_lists_every_vote_once_newest_first(tmp_path: Path) -> None:
    async with open_page(tmp_path) as (coordinator, page):
        await expect_votes(page, 2, 1, 0)
        await coordinator.start()
        await coordinator.judge(3)
        await expect_votes(page, 3, 2, 1, 0)


async def test_entering_the_new_token_shows_the_run_again(tmp_path: Path) -> None:
    async with open_page(tmp_path) as (coordinator, page):
        await expect_votes(page, 2, 1, 0)
        coordinator.tokens.write_text(f"viewer:{NEW_TOKEN}\n")
        await coordinator.start()
        await expect(page.locator("#refused")).to_have_text("The token is no longer valid.", timeout=15_000)
        await expect(page.locator("#page")).to_be_hidden()
        await page.fill("#token", NEW_TOKEN)
        await page.click("#login button")
        await expect(page.locator("#page")).to_be_visible()
        await expect(page.locator("#login")).to_be_hidden()
        await coordinator.judge(3)
        await expect_votes(page, 3, 2, 1, 0)


async def test_selecting_another_run_clears_the_page(tmp_path: Path) -> None:
    async with open_page(tmp_path) as (coordinator, page):
        await expect_votes(page, 2, 1, 0)
        await expect(page.locator("#epochs tr")).to_have_count(1)
        await expect(page.locator("#milestones circle, #scores circle")).not_to_have_count(0)
        await coordinator.create_run(OTHER_RUN)
        await page.select_option("#runs", OTHER_RUN, timeout=15_000)
        await expect(page.locator("#state")).to_have_text("created", timeout=15_000)
        await expect(page.locator("#epochs tr, .charts circle, #figures div, #timeline span")).to_have_count(0)
        await expect(page.locator("#doing")).to_be_empty()


async def test_a_run_older_than_the_200_newest_can_be_shown(tmp_path: Path) -> None:
    async with open_page(tmp_path) as (coordinator, page):
        await expect_votes(page, 2, 1, 0)
        for number in range(200):
            await coordinator.create_run(RunId(f"later-{number}"))
        await expect(page.locator("#runs option")).to_have_count(201, timeout=15_000)
        await expect(page.locator("#runs")).to_have_value(RUN)
        await page.reload()  # the address contains the run
        await expect_votes(page, 2, 1, 0)


async def test_the_page_opens_when_the_store_is_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_page(tmp_path) as (coordinator, page):
        await expect_votes(page, 2, 1, 0)
        with monkeypatch.context() as away:
            away.setattr(coordinator.harness.store, "list", unavailable)
            await page.reload()
            await expect(page.locator("#refused")).to_contain_text("503", timeout=15_000)
            await page.click("#login button")  # with an empty token field
            await expect(page.locator("#refused")).to_contain_text("503", timeout=15_000)
        await expect(page.locator("#page")).to_be_visible(timeout=15_000)
        await expect_votes(page, 2, 1, 0)


async def test_the_age_of_an_update_ignores_the_clock_of_the_browser(tmp_path: Path) -> None:
    async with open_page(tmp_path) as (coordinator, page):
        now = coordinator.harness.time = datetime.now(UTC)
        await coordinator.harness.passes(seconds=0)
        await page.clock.install(time=now + timedelta(hours=1))
        await page.reload()
        await expect_votes(page, 2, 1, 0)
        await expect(page.locator("#age")).to_have_text(re.compile(r"^last update \d{1,2} s ago$"), timeout=15_000)
