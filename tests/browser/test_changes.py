"""The live page while things change: a removed token, a deleted run, slow answers, a silent server, two clicks."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Route, expect

from services.coordinator.api.routes import event_stream
from shared.contracts.ids import RunId
from shared.store import keys
from tests.browser.live_page import OPERATOR, VIEWER, Coordinator, in_a_browser, open_tab, two_epochs
from tests.browser.test_page import show_view
from tests.unit.coordinator.earlier_run import EARLIER, PLACE, ROUTE, add_earlier_run
from tests.unit.coordinator.harness import RUN

pytestmark = in_a_browser
OTHER = RunId("other")
UNREACHABLE = "The server does not answer."
SKEW_AFTER = """async ([path, waits]) => {
    const { request, session } = await import("/page/parts/api.js");
    for (const wait of waits) {
        await new Promise((resolve) => setTimeout(resolve, wait));
        await (await request(path)).blob();
    }
    return session.clockSkew;
}"""  # in one piece: the page's own requests would mend a wrong skew


async def hold(page: Page, pattern: str) -> asyncio.Event:
    """Let requests for these addresses wait until the event is set."""
    free = asyncio.Event()

    async def wait(route: Route) -> None:
        await free.wait()
        await route.continue_()

    await page.route(re.compile(pattern), wait)
    return free


async def test_a_removed_token_is_noticed_after_a_run_was_started(coordinator: Coordinator, browser: Browser) -> None:
    page = await open_tab(browser, coordinator.address(OPERATOR))
    await show_view(page, "start")
    await page.get_by_role("button", name="Start the run").click()
    await expect(page.locator("#state")).to_have_text("created", timeout=15_000)
    coordinator.tokens.write_text("operator:another-token-0123456789\n")
    await coordinator.start()
    await expect(page.locator("#refused")).to_have_text("The token is no longer valid.", timeout=15_000)


async def test_two_clicks_start_one_run_and_a_repeat_is_the_same(coordinator: Coordinator, browser: Browser) -> None:
    page = await open_tab(browser, coordinator.address(OPERATOR))
    asked: list[tuple[str, str]] = []

    async def lose_the_first_answer(route: Route) -> None:
        if route.request.method != "POST":
            return await route.continue_()
        asked.append((route.request.headers["idempotency-key"], route.request.post_data or ""))
        answer = await route.fetch()
        await (route.abort() if len(asked) == 1 else route.fulfill(response=answer))

    await page.route("**/runs", lose_the_first_answer)
    await show_view(page, "start")
    await page.get_by_role("button", name="Start the run").dblclick()
    await expect(page.locator(".start [role=alert]")).to_have_text(UNREACHABLE)
    await page.get_by_role("button", name="Start the run").click()
    await expect(page.locator("#state")).to_have_text("created", timeout=15_000)
    assert len(asked) == 2
    assert asked[0] == asked[1]
    assert len(await coordinator.harness.models.runs.all()) == 1


async def test_a_run_deleted_elsewhere_is_unknown_not_disconnected(coordinator: Coordinator, browser: Browser) -> None:
    await coordinator.create_run(OTHER)
    await coordinator.create_run(RUN)
    await coordinator.harness.service.stop(RUN)
    await coordinator.harness.passes(3)
    page = await open_tab(browser, coordinator.address(VIEWER, f"?run={RUN}"))
    await expect(page.locator("#state")).to_have_text("stopped")
    await coordinator.harness.service.delete(RUN)
    await expect(page.locator(".banner")).to_have_text(
        re.compile(f"^Unknown run. There is no run {RUN}"), timeout=15_000
    )
    await expect(page.locator("#state")).to_have_text("no run")
    await expect(page.locator("#age")).not_to_have_text("connection lost")


async def test_a_silent_stream_counts_as_lost(
    coordinator: Coordinator, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    await coordinator.create_run(RUN)

    async def silent(*_: Any) -> AsyncIterator[str]:
        yield ": the only sign of life\n\n"
        await asyncio.sleep(600)

    with monkeypatch.context() as half_open:
        half_open.setattr(event_stream, "event_lines", silent)
        page = await open_tab(browser, "about:blank")
        await page.clock.install()
        await page.goto(coordinator.address())
        await expect(page.locator("#runs")).to_have_value(RUN)
        await page.wait_for_timeout(500)
        await page.clock.fast_forward(35_000)
        await expect(page.locator(".banner")).to_contain_text("Connection lost.")
    await page.clock.fast_forward(35_000)
    await expect(page.locator("#state")).to_have_text("created", timeout=15_000)
    await expect(page.locator(".banner")).to_have_count(0)


async def test_a_late_answer_about_another_run_is_not_shown(coordinator: Coordinator, browser: Browser) -> None:
    await coordinator.create_run(OTHER)
    await coordinator.create_run(RUN)
    await coordinator.harness.service.write_notes(RUN, "of demo", [])
    await coordinator.harness.service.write_notes(OTHER, "of other", [])
    page = await open_tab(browser, coordinator.address(VIEWER, f"?run={RUN}"))
    free = await hold(page, f"/runs/{RUN}/notes")
    async with page.expect_request(f"**/runs/{RUN}/notes"):
        await show_view(page, "configuration")
    await page.select_option("#runs", OTHER)
    await expect(page.locator(".note")).to_have_text("of other")
    async with page.expect_response(f"**/runs/{RUN}/notes"):
        free.set()
    await page.wait_for_timeout(300)
    await expect(page.locator(".note")).to_have_text("of other")


@pytest.mark.parametrize(("view", "what"), [("segments", "gallery"), ("map", "rooms"), ("logs", "logs")])
async def test_a_late_failure_of_another_run_is_not_shown(
    coordinator: Coordinator, browser: Browser, view: str, what: str
) -> None:
    await two_epochs(coordinator.harness)
    await coordinator.create_run(OTHER)
    page = await open_tab(browser, coordinator.address(OPERATOR, f"?run={RUN}"))
    free = asyncio.Event()

    async def fail_late(route: Route) -> None:
        await free.wait()
        await route.abort()

    await page.route(re.compile(f"/runs/{RUN}/.*{what}"), fail_late)
    async with page.expect_request(re.compile(f"/runs/{RUN}/.*{what}")):
        await show_view(page, view)
    await page.select_option("#runs", OTHER)
    await expect(page.locator("#state")).to_have_text("created")
    async with page.expect_event("requestfailed"):
        free.set()
    await page.wait_for_timeout(300)
    await expect(page.locator("#view")).not_to_contain_text(UNREACHABLE)


async def test_a_view_that_could_not_be_read_is_read_again(coordinator: Coordinator, browser: Browser) -> None:
    await add_earlier_run(coordinator.harness.store)
    page = await open_tab(browser, coordinator.address(query=f"?run={EARLIER}"))
    await expect(page.locator("#epochs tbody tr").first).to_be_visible()
    await coordinator.stop()
    await show_view(page, "segments")
    await expect(page.locator("#view")).to_contain_text(UNREACHABLE)
    await coordinator.start()
    await page.get_by_role("button", name="Read again").click()
    await expect(page.locator(".card")).to_have_count(6)
    twin = PLACE._replace(segment=type(PLACE.segment)("e0000-r00-v00-0000-s900"))
    await coordinator.harness.store.put(keys.segment(*twin), await coordinator.harness.store.get(keys.segment(*PLACE)))
    await show_view(page, "overview")
    await show_view(page, "segments")  # a second look shows what was recorded meanwhile
    await expect(page.locator(".card", has_text="2 identical")).to_have_count(1)


async def test_a_run_is_compared_with_others_not_with_itself(coordinator: Coordinator, browser: Browser) -> None:
    await two_epochs(coordinator.harness)
    await coordinator.create_run(OTHER, seed=7)
    page = await open_tab(browser, coordinator.address(query=f"?run={OTHER}"))
    await show_view(page, "learning")
    await page.select_option("#compare", RUN)
    await expect(page.get_by_role("button", name=f"Remove {RUN}")).to_be_visible()
    await show_view(page, "configuration")
    await page.select_option("#other", RUN)
    await expect(page.locator("th[scope=col]")).to_have_text(["field", OTHER, RUN])
    await page.select_option("#runs", RUN)
    await expect(page.locator("th[scope=col]")).to_have_text(["field", RUN])
    await show_view(page, "learning")
    plot = page.get_by_role("img", name=re.compile("^milestones per episode"))
    await expect(plot).to_have_attribute("aria-label", re.compile("values: training 0.500, evaluation 0.500$"))


@pytest.mark.parametrize(("view", "choice"), [("learning", "#compare"), ("configuration", "#other")])
async def test_a_comparison_that_fails_says_why(
    coordinator: Coordinator, browser: Browser, view: str, choice: str
) -> None:
    await two_epochs(coordinator.harness)
    await coordinator.create_run(OTHER)
    page = await open_tab(browser, coordinator.address(query=f"?run={RUN}"))
    await show_view(page, view)
    await page.route(re.compile(f"/runs/{OTHER}"), lambda route: route.abort())
    await page.select_option(choice, OTHER)
    await expect(page.locator("#view [role=alert]")).to_have_text(UNREACHABLE)
    await expect(page.locator(choice)).to_have_value("")


async def test_pictures_wait_while_the_server_takes_no_more(coordinator: Coordinator, browser: Browser) -> None:
    await add_earlier_run(coordinator.harness.store)
    page = await open_tab(browser, coordinator.address(query=f"?run={EARLIER}"))
    refused: set[str] = set()

    async def refuse_once(route: Route) -> None:
        if route.request.url in refused:
            return await route.continue_()
        refused.add(route.request.url)
        await route.fulfill(status=429, headers={"Retry-After": "1"}, body="{}")

    await page.route("**/frames/*", refuse_once)
    await show_view(page, "segments")
    await expect(page.locator(".gallery img.drawn")).to_have_count(6, timeout=15_000)
    assert refused


async def test_a_picture_from_the_cache_does_not_change_the_clock(coordinator: Coordinator, browser: Browser) -> None:
    await add_earlier_run(coordinator.harness.store)
    page = await open_tab(browser, coordinator.address())
    skew = await page.evaluate(SKEW_AFTER, [f"{ROUTE.removeprefix('/')}/frames/7", [0, 5000]])
    assert -1500 < skew < 1500  # 5 s old pictures say 5 s ago


async def test_a_slow_answer_does_not_change_the_clock(coordinator: Coordinator, browser: Browser) -> None:
    page = await open_tab(browser, coordinator.address())

    async def deliver_late(route: Route) -> None:
        answer = await route.fetch()
        await asyncio.sleep(3)
        await route.fulfill(response=answer)

    await page.route("**/session", deliver_late)
    assert -1500 < await page.evaluate(SKEW_AFTER, ["session", [0]]) < 1500
