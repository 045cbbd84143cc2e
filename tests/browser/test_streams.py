"""The live page with broken streams, a changed token, a slow store, many runs and a wrong clock."""

import re
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from shared.contracts.ids import RunId
from shared.errors import Transient
from shared.store.port import ObjectEntry
from tests.browser.live_page import VIEWER, Coordinator, in_a_browser, open_tab
from tests.unit.coordinator.harness import RUN, segment

pytestmark = in_a_browser
OTHER_RUN = RunId("another")
NEW_TOKEN = "another-token-0123456789"


@pytest_asyncio.fixture(loop_scope="module")
async def page(coordinator: Coordinator, browser: Browser) -> Page:
    """A tab that shows a run with three judged segments."""
    await coordinator.harness.create_run()
    await coordinator.harness.passes()
    await coordinator.harness.train(0, metrics={"milestones_mean": 0.5})
    for number in range(3):
        await coordinator.judge(number)
    await coordinator.harness.passes()
    return await open_tab(browser, coordinator.address(VIEWER))


async def unavailable(prefix: str) -> list[ObjectEntry]:
    """A listing while the store is away."""
    raise Transient("store: no answer within 15 s")


async def expect_votes(page: Page, *numbers: int) -> None:
    """The page lists the votes on exactly these segments, in this order."""
    wanted = [re.compile(segment(0, number)) for number in numbers]
    await expect(page.locator("#votes .segment")).to_have_text(wanted, timeout=15_000)


async def test_a_broken_stream_lists_every_vote_once_newest_first(coordinator: Coordinator, page: Page) -> None:
    await expect_votes(page, 2, 1, 0)
    await coordinator.start()
    await coordinator.judge(3)
    await expect_votes(page, 3, 2, 1, 0)


async def test_entering_the_new_token_shows_the_run_again(coordinator: Coordinator, page: Page) -> None:
    await expect_votes(page, 2, 1, 0)
    coordinator.tokens.write_text(f"viewer:{NEW_TOKEN}\n")
    await coordinator.start()
    await expect(page.locator("#refused")).to_have_text("The token is no longer valid.", timeout=15_000)
    await expect(page.locator("#view")).to_be_hidden()
    await page.fill("#token", NEW_TOKEN)
    await page.click("#login button")
    await expect(page.locator("#view")).to_be_visible()
    await expect(page.locator("#login")).to_be_hidden()
    await coordinator.judge(3)
    await expect_votes(page, 3, 2, 1, 0)


async def test_selecting_another_run_clears_the_page(coordinator: Coordinator, page: Page) -> None:
    await expect_votes(page, 2, 1, 0)
    await expect(page.locator("#epochs tbody tr")).to_have_count(1)
    await coordinator.create_run(OTHER_RUN)
    await page.reload()
    await page.select_option("#runs", OTHER_RUN, timeout=15_000)
    await expect(page.locator("#state")).to_have_text("created", timeout=15_000)
    await expect(page.locator("#epochs tbody tr, #votes li, .figures, .timeline")).to_have_count(0)


async def test_a_run_older_than_the_200_newest_can_be_shown(coordinator: Coordinator, page: Page) -> None:
    await expect_votes(page, 2, 1, 0)
    for number in range(200):
        await coordinator.create_run(RunId(f"later-{number}"))
    await page.reload()  # the address contains the run
    await expect(page.locator("#runs option")).to_have_count(201, timeout=15_000)
    await expect(page.locator("#runs")).to_have_value(RUN)
    await expect_votes(page, 2, 1, 0)


async def test_the_page_opens_when_the_store_is_back(
    coordinator: Coordinator, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    await expect_votes(page, 2, 1, 0)
    with monkeypatch.context() as away:
        away.setattr(coordinator.harness.store, "list", unavailable)
        await page.reload()
        await expect(page.locator("#refused")).to_contain_text("The coordinator is not available", timeout=15_000)
        await page.click("#login button")  # with an empty token field
        await expect(page.locator("#refused")).to_contain_text("The coordinator is not available", timeout=15_000)
    await expect(page.locator("#view")).to_be_visible(timeout=15_000)
    await expect_votes(page, 2, 1, 0)


async def test_the_age_of_an_update_ignores_the_clock_of_the_browser(coordinator: Coordinator, page: Page) -> None:
    now = coordinator.harness.time = datetime.now(UTC)
    await coordinator.harness.passes(seconds=0)
    await page.clock.install(time=now + timedelta(hours=1))
    await page.reload()
    await expect_votes(page, 2, 1, 0)
    await expect(page.locator("#age")).to_have_text(re.compile(r"^last update \d{1,2} s ago$"), timeout=15_000)
