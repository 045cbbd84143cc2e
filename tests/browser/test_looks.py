"""What the live page looks like at its limits: no run, one epoch, many epochs, long names, and with a keyboard."""

import json
import re

import pytest
from playwright.async_api import Browser, Page, Route, expect

from shared.bus.topology import JUDGE_SEGMENTS
from shared.contracts.ids import RunId
from shared.store import keys
from tests.browser.live_page import OPERATOR, VIEWER, Coordinator, in_a_browser, open_tab, two_epochs
from tests.browser.test_page import fail, show_view
from tests.events import segment_ready
from tests.unit.coordinator.earlier_run import EARLIER, PLACE, add_earlier_run
from tests.unit.coordinator.harness import RUN, Harness

pytestmark = in_a_browser
TRACK = """
window.open_addresses = new Set(); window.listeners = 0;
const { createObjectURL, revokeObjectURL } = URL;
URL.createObjectURL = (blob) => { const made = createObjectURL(blob); open_addresses.add(made); return made; };
URL.revokeObjectURL = (address) => { open_addresses.delete(address); revokeObjectURL(address); };
for (const [name, change] of [["addEventListener", 1], ["removeEventListener", -1]]) {
  const own = window[name].bind(window);
  window[name] = (...given) => { window.listeners += change; own(...given); };
}
"""
"""Counts what a page holds: addresses of blobs, and listeners on the window."""


async def tracked(browser: Browser, address: str) -> Page:
    """A tab that counts what it holds."""
    page = await open_tab(browser, "about:blank")
    await page.add_init_script(TRACK)
    await page.goto(address)
    return page


async def test_every_view_says_that_there_is_no_run(coordinator: Coordinator, browser: Browser) -> None:
    page = await open_tab(browser, coordinator.address(OPERATOR))
    for view in ("overview", "learning", "segments", "map", "judges", "configuration", "logs"):
        await show_view(page, view)
        await expect(page.locator("#view")).to_contain_text(re.compile("[Nn]o "))


async def test_a_keyboard_keeps_its_place_in_the_navigation(coordinator: Coordinator, browser: Browser) -> None:
    page = await open_tab(browser, coordinator.address())
    await page.locator("#nav a[href='#/learning']").focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("#nav a[href='#/learning']")).to_have_attribute("aria-current", "page")
    await expect(page.locator("#nav a[href='#/learning']")).to_be_focused()
    await expect(page.locator("#nav a[aria-current]")).to_have_count(1)


async def test_a_keyboard_keeps_its_place_in_a_list_of_choices(coordinator: Coordinator, browser: Browser) -> None:
    await add_earlier_run(coordinator.harness.store)
    page = await open_tab(browser, coordinator.address(query=f"?run={EARLIER}"))
    await show_view(page, "segments")
    await page.get_by_label("Sort by").focus()
    for chosen in ("lowest score", "disagreement"):
        await page.keyboard.press("ArrowDown")
        await expect(page.get_by_label("Sort by")).to_have_value(chosen)
        await expect(page.get_by_label("Sort by")).to_be_focused()


async def test_a_token_of_another_role_shows_its_views(coordinator: Coordinator, browser: Browser) -> None:
    page = await open_tab(browser, coordinator.address(VIEWER))
    await expect(page.locator("#nav a")).to_have_count(7)
    await page.evaluate(f"location.hash = '#token={OPERATOR}'")
    await expect(page.locator("#nav a")).to_have_count(8)
    await expect(page.locator("#nav a[aria-current]")).to_have_text("Overview")


async def test_a_change_of_the_theme_keeps_what_was_typed(coordinator: Coordinator, browser: Browser) -> None:
    await coordinator.create_run(RUN)
    page = await open_tab(browser, coordinator.address(OPERATOR))
    await show_view(page, "configuration")
    await page.locator("[name=note]").fill("half a thought")
    await page.emulate_media(color_scheme="dark")
    await page.wait_for_timeout(300)
    await expect(page.locator("[name=note]")).to_have_value("half a thought")


async def test_charts_off_the_page_hold_no_listeners(coordinator: Coordinator, browser: Browser) -> None:
    await two_epochs(coordinator.harness)
    page = await tracked(browser, coordinator.address())
    held = []
    for _ in range(3):
        await show_view(page, "learning")
        await expect(page.locator(".u-legend").first).to_be_visible()
        await show_view(page, "map")
        await page.wait_for_timeout(300)
        held.append(await page.evaluate("window.listeners"))
    assert held == [held[0]] * 3


async def test_a_closed_segment_frees_its_video_and_stops_asking(coordinator: Coordinator, browser: Browser) -> None:
    store = coordinator.harness.store
    await add_earlier_run(store)
    page = await tracked(browser, coordinator.address(query=f"?run={EARLIER}"))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/video") else None)
    await show_view(page, "segments")
    await page.locator(".card", has_text=PLACE.segment).click()
    await page.click("text=Show the video and the potential")
    await expect(page.locator("dialog [role=status]")).to_contain_text("The exporter makes the video")
    await page.keyboard.press("Escape")
    await page.wait_for_timeout(3_000)
    assert len(asked) == 1
    await store.put(f"{keys.export_prefix(*PLACE)}video.mp4", b"frames")
    await page.locator(".card", has_text=PLACE.segment).click()
    await expect(page.locator("dialog img.drawn")).to_have_count(8)
    await page.click("text=Show the video and the potential")
    await expect(page.locator("dialog video")).to_have_attribute("src", re.compile("^blob:"))
    await page.keyboard.press("Escape")
    await expect(page.locator("dialog")).to_have_count(0)
    assert await page.evaluate("open_addresses.size") == 0


async def test_an_epoch_without_judges_does_not_wait_for_a_model(coordinator: Coordinator, browser: Browser) -> None:
    harness = coordinator.harness
    await harness.create_run(judge_interval=2)
    await harness.passes()
    await harness.complete_epoch(0)
    await harness.train(1, segments=0)
    await harness.passes()
    page = await open_tab(browser, coordinator.address())
    await expect(page.locator(".sentence")).to_contain_text(
        "Epoch 1 is not judged, so it has no reward model of its own."
    )
    await expect(page.locator("#epochs tbody tr").first).to_contain_text("none: not judged")


async def test_a_stopped_run_does_not_wait_for_a_model(coordinator: Coordinator, browser: Browser) -> None:
    harness = coordinator.harness
    await harness.create_run()
    await harness.passes()
    await harness.train(0)
    await harness.passes()
    page = await open_tab(browser, coordinator.address())
    await expect(page.locator("#epochs tbody tr").first).to_contain_text("none yet")
    await fail(harness, "The driver ended")
    await expect(page.locator("#state")).to_have_text("failed")
    await expect(page.locator("#epochs tbody tr").first).not_to_contain_text("none yet")
    await expect(page.locator(".sentence")).to_contain_text("No reward model was trained on it.")
    await expect(page.locator(".banner")).to_contain_text(f"The driver ended. Resume it with zelda run resume {RUN}.")


async def test_the_chart_of_one_epoch_has_room_for_one(coordinator: Coordinator, browser: Browser) -> None:
    harness = coordinator.harness
    await harness.create_run()
    await harness.passes()
    await harness.train(0, metrics={f"reward/term_{at}": 1.0 for at in range(10)} | {"milestones_mean": 0.5})
    await harness.passes()
    page = await open_tab(browser, coordinator.address())
    await show_view(page, "learning")
    await expect(page.locator(".u-legend").first).to_be_visible()
    figure = "[...document.querySelectorAll('figure')].find((one) => one.textContent.startsWith(%r)).uplot"
    scale = await page.evaluate(f"{figure % 'milestones'}.scales.x")
    assert (scale["min"], scale["max"]) == (-0.5, 0.5)
    drawn = await page.evaluate(
        f"{figure % 'return per episode by term'}.series.slice(1).map((one) => [one._stroke, String(one.dash)])"
    )
    assert len({tuple(one) for one in drawn}) == 10  # eight colours


async def long_run(harness: Harness, epoch: int) -> None:
    """A run of 300 epochs that plays this one."""
    await harness.create_run(epochs=300)
    await harness.passes()
    progress = await harness.models.progress(RUN)
    assert progress is not None
    await harness.store.put(keys.progress(RUN), progress.model_copy(update={"epoch": epoch}).to_bytes())


@pytest.mark.parametrize("width", [1280, 390])
async def test_the_epoch_that_plays_is_among_those_drawn(
    coordinator: Coordinator, browser: Browser, width: int
) -> None:
    await long_run(coordinator.harness, 250)
    page = await open_tab(browser, coordinator.address(), width=width)
    await expect(page.locator(".timeline .now")).to_have_attribute("title", "epoch 250: now")
    await expect(page.locator(".timeline")).to_have_attribute("aria-label", "epochs 100 to 299 of 300")
    await expect(page.locator(".timeline + p")).to_have_text("epochs 100 to 299 of 300")
    await expect(page.locator("#age")).to_have_text(re.compile(r"^last update \d+ h \d+ min ago$"))  # months in a test
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_a_long_name_of_a_run_fits_a_phone(coordinator: Coordinator, browser: Browser) -> None:
    await coordinator.create_run(RunId("a-name-of-forty-characters-as-long-as-it"))
    page = await open_tab(browser, coordinator.address(), width=390)
    await expect(page.locator("#state")).to_have_text("created")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_dead_letters_keep_the_focus_while_nothing_changes(coordinator: Coordinator, browser: Browser) -> None:
    bus = coordinator.harness.bus
    await coordinator.create_run(RUN)
    await bus.publish(segment_ready(0))
    for delivery in await bus.fetch(JUDGE_SEGMENTS, 1, 0):
        await delivery.reject("a reason")
    page = await open_tab(browser, "about:blank")
    await page.clock.install()
    await page.goto(coordinator.address(OPERATOR))
    replay = page.get_by_role("button", name="Replay dead letter")
    await replay.focus()
    async with page.expect_response("**/dead-letters"):
        await page.clock.fast_forward(31_000)
    await page.wait_for_timeout(300)
    await expect(replay).to_be_focused()


async def test_a_gallery_says_that_it_leaves_segments_out(coordinator: Coordinator, browser: Browser) -> None:
    await add_earlier_run(coordinator.harness.store)
    page = await open_tab(browser, coordinator.address(query=f"?run={EARLIER}"))

    async def endless(route: Route) -> None:
        answer = await (await route.fetch()).json()
        answer["items"] = [one | {"play": f"{route.request.url}{at}"} for at, one in enumerate(answer["items"] * 40)]
        await route.fulfill(body=json.dumps(answer | {"next": PLACE.segment}), content_type="application/json")

    await page.route("**/gallery?*", endless)
    await show_view(page, "segments")
    await expect(page.locator("#view")).to_contain_text("the first 1,040 segments by name are shown", timeout=15_000)


async def test_an_epoch_that_recorded_nothing_says_so(coordinator: Coordinator, browser: Browser) -> None:
    harness = coordinator.harness
    await harness.create_run(judge_interval=2)
    await harness.passes()
    await harness.complete_epoch(0)
    await harness.train(1, segments=0)
    await harness.passes()
    page = await open_tab(browser, coordinator.address())
    await show_view(page, "segments")
    await expect(page.get_by_label("Epoch")).to_have_value("0")  # the newest one with segments
    await page.get_by_label("Epoch").select_option("1")
    await expect(page.locator("#view")).to_contain_text("No segment of this epoch was recorded.")
    await show_view(page, "map")
    await expect(page.get_by_label("Show")).to_have_value("0")
    await page.get_by_label("Show").select_option("1")
    await expect(page.locator("#view")).to_contain_text("No segment was recorded.")


async def test_the_map_explains_its_numbers(coordinator: Coordinator, browser: Browser) -> None:
    await add_earlier_run(coordinator.harness.store)
    page = await open_tab(browser, coordinator.address(query=f"?run={EARLIER}"))
    await show_view(page, "map")
    await expect(page.locator("#view")).to_contain_text("The number in a room counts steps.")


async def test_the_table_of_judges_says_which_epochs_it_shows(coordinator: Coordinator, browser: Browser) -> None:
    await add_earlier_run(coordinator.harness.store)
    page = await open_tab(browser, coordinator.address(query=f"?run={EARLIER}"))
    await expect(page.locator("#epochs tbody tr").first).to_be_visible()
    await page.evaluate(
        """async () => {
          const { rows, take } = await import('/page/parts/state.js');
          const [row] = rows().filter((one) => one.judging);
          for (let epoch = 0; epoch < 40; epoch += 1) take('epoch', { ...row, epoch });
        }"""
    )
    await show_view(page, "judges")
    await expect(page.locator("caption").first).to_have_text(
        "Each judge in the newest 30 of 40 judged epochs, newest first"
    )
