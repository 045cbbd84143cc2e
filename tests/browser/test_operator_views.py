"""What a judge was asked word for word, and the logs of the local system: text only, logs for operators only."""

import json
from pathlib import Path

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, expect

from services.coordinator.readmodels.service_logs import ServiceLogs
from shared.contracts.scores import JudgeReplies, JudgeResult, SegmentScores
from shared.store import keys
from tests.browser.live_page import (
    OPERATOR,
    VIEWER,
    Coordinator,
    Theme,
    in_a_browser,
    open_tab,
)
from tests.browser.test_page import HOSTILE, fail, show_view
from tests.unit.coordinator.earlier_run import EARLIER, PLACE, add_earlier_run
from tests.unit.coordinator.harness import RUN

pytestmark = in_a_browser


async def first_result(coordinator: Coordinator) -> JudgeResult:
    """The first judge's result on a segment of the earlier run."""
    stored = await coordinator.harness.store.get(keys.score(EARLIER, PLACE.epoch, PLACE.segment))
    return SegmentScores.from_bytes(stored).judges[0]


async def open_drawer(page: Page) -> None:
    """Open the segment in the view Segments, then what its judge read and replied."""
    await show_view(page, "segments")
    await page.locator(".card", has_text=PLACE.segment).click()
    await page.locator("dialog .replies summary").first.click()


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
async def test_prompt_and_raw_replies_are_text_in_the_drawer(
    coordinator: Coordinator, browser: Browser, theme: Theme, width: int
) -> None:
    await add_earlier_run(coordinator.harness.store)
    result = await first_result(coordinator)
    messages = [{"role": HOSTILE[0], "content": HOSTILE[1]}, {"role": "user", "content": "the hero opened a chest"}]
    kept = JudgeReplies(judge=result.judge, prompt={"model": HOSTILE[2], "messages": messages}, replies=list(HOSTILE))
    await coordinator.harness.store.put(keys.replies(EARLIER, result.prompt), kept.pack())
    page = await open_tab(browser, coordinator.address(query=f"?run={EARLIER}"), width=width, theme=theme)
    await open_drawer(page)
    texts = page.locator("dialog .replies .raw")
    await expect(texts).to_have_count(len(HOSTILE) + len(messages) + 1)
    assert (await texts.all_text_contents())[: len(HOSTILE)] == list(HOSTILE)
    await expect(texts.nth(len(HOSTILE) + 1)).to_have_text("the hero opened a chest")
    await expect(texts.last).to_contain_text(HOSTILE[2])
    assert await page.locator("dialog .replies *:is(img, svg, script, iframe, [onerror])").count() == 0
    assert await page.evaluate("window.hacked") is None
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found = await Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


async def test_the_drawer_says_how_to_keep_replies_where_none_are(coordinator: Coordinator, browser: Browser) -> None:
    await add_earlier_run(coordinator.harness.store)
    page = await open_tab(browser, coordinator.address(query=f"?run={EARLIER}"))
    await open_drawer(page)
    await expect(page.locator("dialog .replies").first).to_contain_text(
        "start the system again with ZELDA_JUDGE__KEEP_REPLIES=true"
    )


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
async def test_an_operator_comes_from_a_failure_to_the_logs(
    coordinator: Coordinator, browser: Browser, tmp_path: Path, theme: Theme, width: int
) -> None:
    (tmp_path / "trainer.log").write_text(
        json.dumps({"timestamp": "2026-11-23T12:00:00Z", "level": "error", "event": "driver failed", "run": RUN})
        + "\n"
        + json.dumps({"event": "driver started", "run": "another"})
        + f"\n{HOSTILE[0]}\n"
    )
    (tmp_path / "judge.log").write_text('{"event": "service started", "service": "judge", "level": "info"}\n')
    coordinator.harness.logs = ServiceLogs(tmp_path)
    await coordinator.start()
    await coordinator.harness.create_run()
    await coordinator.harness.passes()
    await fail(coordinator.harness, "The driver ended.")
    page = await open_tab(browser, coordinator.address(OPERATOR), width=width, theme=theme)
    await page.locator(".banner").get_by_role("link", name="logs").click()
    await expect(page.locator(".log")).to_have_text(f"2026-11-23 12:00:00 error   driver failed\n{HOSTILE[0]}")
    assert await page.evaluate("window.hacked") is None
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    found = await Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    await page.get_by_label("Process").select_option("judge")
    await expect(page.locator(".log")).to_contain_text("service started")


async def test_a_viewer_sees_no_logs(coordinator: Coordinator, browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "trainer.log").write_text("a line\n")
    coordinator.harness.logs = ServiceLogs(tmp_path)
    await coordinator.start()
    await coordinator.create_run(RUN)
    page = await open_tab(browser, f"http://127.0.0.1:{coordinator.port}/#token={VIEWER}")
    await expect(page.locator("#state")).to_have_text("created")
    await expect(page.locator("#nav a[href='#/logs']")).to_have_count(0)
    await page.evaluate("location.hash = '#/logs'")
    await expect(page.locator("#nav a[aria-current]")).to_have_attribute("href", "#/overview")


async def test_the_page_of_a_cluster_says_where_logs_are(coordinator: Coordinator, browser: Browser) -> None:
    await coordinator.create_run(RUN)
    page = await open_tab(browser, coordinator.address(OPERATOR))
    await show_view(page, "logs")
    await expect(page.locator("#view")).to_contain_text("oc logs deploy/zelda-trainer")
