"""The report of a run in a real browser: downloaded from the page, readable without a server, safe to open."""

from pathlib import Path
from typing import Final

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, expect

from shared.contracts.progress import RunSummary
from shared.store import keys
from tests.browser.live_page import Coordinator, Theme, in_a_browser, open_tab
from tests.browser.test_page import HOSTILE
from tests.unit.coordinator.earlier_run import EARLIER, add_earlier_run

pytestmark = in_a_browser
LOOKS: Final[tuple[tuple[Theme, int], ...]] = (("light", 1280), ("dark", 390))


async def read_file(browser: Browser, file: Path, theme: Theme, width: int) -> None:
    """Open the file as a user does, and check what it shows and that it is accessible."""
    page = await open_tab(browser, file.as_uri(), width=width, theme=theme)
    await expect(page.locator(".verdict")).to_contain_text("milestones per evaluation episode")
    await expect(page.get_by_role("img", name="milestones per episode").locator("canvas")).to_have_count(1)
    await expect(page.locator(".plays img")).to_have_count(8)
    await expect(page.locator(".judge .reason").first).not_to_be_empty()
    await expect(page.locator("ul.map img").first).to_be_visible()
    await expect(page.locator(".bad").first).to_have_text(" ".join(HOSTILE).replace("\0", ""))
    assert await page.locator("[onerror], #report svg, #report script").count() == 0
    assert await page.evaluate("window.hacked") is None
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found = await Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    await page.context.close()


async def test_a_downloaded_report_shows_everything_without_a_server(
    coordinator: Coordinator, browser: Browser, tmp_path: Path
) -> None:
    store = coordinator.harness.store
    await add_earlier_run(store)
    summary = RunSummary.from_bytes(await store.get(keys.run_summary(EARLIER)))
    hostile = summary.model_copy(update={"reason": " ".join(HOSTILE).replace("\0", "")})
    await store.put(keys.run_summary(EARLIER), hostile.to_bytes())
    page = await open_tab(browser, coordinator.address(query=f"?run={EARLIER}"))
    async with page.expect_download() as downloading:
        await page.get_by_role("button", name="Download the report").click()
    download = await downloading.value
    assert download.suggested_filename == f"{EARLIER}.html"
    file = tmp_path / "report.html"
    await download.save_as(file)
    await page.context.close()
    await coordinator.stop()
    for theme, width in LOOKS:
        await read_file(browser, file, theme, width)
