"""Recorded play on the live page: the gallery, one segment with votes and video, the map of rooms."""

import re

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, expect

from shared.contracts.ids import SegmentId
from shared.contracts.progress import ArchiveCoverage, ArchivedRoom
from shared.contracts.scores import SegmentScores
from shared.store import keys
from tests.browser.live_page import Coordinator, in_a_browser, open_tab
from tests.unit.coordinator.earlier_run import EARLIER, PLACE, add_earlier_run
from tests.unit.coordinator.harness import RUN
from tests.unit.coordinator.test_live_frames import live_frame

pytestmark = in_a_browser
SEGMENTS = 6


async def test_pictures_votes_and_a_video_show_a_segment(coordinator: Coordinator, browser: Browser) -> None:
    store = coordinator.harness.store
    await add_earlier_run(store)
    key = keys.score(EARLIER, 0, PLACE.segment)
    judged = SegmentScores.from_bytes(await store.get(key))
    gated = judged.model_copy(update={"gated": {judged.judges[0].judge: ["drift +0.300 is beyond 0.1"]}})
    await store.put(key, gated.to_bytes())
    page = await open_tab(browser, coordinator.address(query=f"?run={EARLIER}"))
    await page.locator("#votes img").first.scroll_into_view_if_needed()  # pictures load where they are seen
    await expect(page.locator("#votes img.drawn").first).to_be_visible(timeout=15_000)
    await page.click("#nav a[href='#/segments']")
    await expect(page.locator(".gallery .card")).to_have_count(SEGMENTS)
    await expect(page.locator(".gallery img.drawn")).to_have_count(SEGMENTS)
    scores = [float(text) for text in await page.locator(".card strong").all_inner_texts()]
    assert scores == sorted(scores, reverse=True)
    await page.get_by_label("Show").select_option("votes differ")
    await expect(page.get_by_role("heading", name="No segment matches")).to_be_visible()
    await page.get_by_label("Show").select_option("all")
    await page.locator(".card", has_text=PLACE.segment).click()
    await expect(page.locator("dialog img.drawn")).to_have_count(8)
    await expect(page.locator("dialog .reason").first).not_to_be_empty()
    await expect(page.locator("dialog .judge").first).to_contain_text(re.compile("route .*, prompt [0-9a-f]{12}"))
    await expect(page.locator("dialog .judge .bad")).to_have_text("not counted: drift +0.300 is beyond 0.1")
    found = await Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    await page.click("text=Show the video and the potential")
    await expect(page.locator("dialog [role=status]")).to_contain_text("The exporter makes the video")
    await store.put(f"{keys.export_prefix(*PLACE)}potential.json", b"[0.1, 0.4, 0.35]")
    await store.put(f"{keys.export_prefix(*PLACE)}video.mp4", b"frames")
    await expect(page.locator("dialog video")).to_have_attribute("src", re.compile("^blob:"), timeout=15_000)
    await expect(
        page.get_by_role("img", name=re.compile("^potential Phi.*Phi 0.350")).locator("canvas")
    ).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator("dialog")).to_have_count(0)


async def test_segments_behind_a_page_with_a_damaged_archive_are_shown(
    coordinator: Coordinator, browser: Browser
) -> None:
    store = coordinator.harness.store
    await add_earlier_run(store)
    archive = await store.get(keys.segment(*PLACE))
    for number in range(300, 500):  # 206 in all: two pages, and a damaged archive in the first one
        segment = SegmentId(f"e0000-r00-v00-0000-s{number}")
        await store.put(keys.segment(*PLACE._replace(segment=segment)), archive if number > 300 else b"damaged")
    page = await open_tab(browser, coordinator.address(query=f"?run={EARLIER}"))
    await page.click("#nav a[href='#/segments']")
    await expect(page.locator(".gallery .card")).to_have_count(SEGMENTS, timeout=15_000)
    await expect(page.locator(".card", has_text="200 identical")).to_have_count(1)


async def test_the_map_pictures_each_room_with_its_steps(coordinator: Coordinator, browser: Browser) -> None:
    await add_earlier_run(coordinator.harness.store)
    reached = ArchivedRoom(group=0, room=200, cells=7, new_cells=2, visits=9)
    coverage = ArchiveCoverage(run=EARLIER, epoch=0, rooms=[reached])
    await coordinator.harness.store.put(keys.archive_coverage(EARLIER, 0), coverage.to_bytes())
    page = await open_tab(browser, coordinator.address(query=f"?run={EARLIER}"), width=390, theme="dark")
    await page.click("#nav a[href='#/map']")
    await expect(page.locator(".map li").first).to_be_visible()
    steps = await page.locator(".map .steps").all_inner_texts()
    assert sum(int(text.replace(",", "")) for text in steps) == SEGMENTS * 300
    await expect(page.locator(".map img.drawn").first).to_be_visible()
    await expect(page.locator(".map li.frontier")).to_have_attribute("title", re.compile("7 archive cells, 2 new"))
    await expect(page.locator("#view")).to_contain_text("archive of states has 7 cells in 1 room, 2 of them new")
    found = await Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_the_live_picture_shows_state_and_milestones(coordinator: Coordinator, browser: Browser) -> None:
    harness = coordinator.harness
    await harness.create_run()
    await harness.passes()
    page = await open_tab(browser, coordinator.address())
    await expect(page.locator("#live")).to_contain_text("The picture appears within seconds")
    await harness.store.put(keys.live_frame(RUN), live_frame(harness).to_bytes())
    await expect(page.locator("#live img")).to_have_attribute("alt", "room 12 of group 0")
    await expect(page.locator("#live .facts")).to_contain_text("2.5 of 3 hearts")
    await expect(page.locator("#live summary")).to_have_text("1 of 2 milestones")
    await page.locator("#live summary").click()
    await expect(page.locator("#live .good")).to_have_text("✓ sword found")
    await harness.store.put(keys.live_frame(RUN), live_frame(harness, step=9).to_bytes())
    await expect(page.locator("#live")).to_contain_text("step 9")
    await expect(page.locator("#live .good")).to_be_visible()  # an update closes nothing
    assert (await Axe().run(page)).violations_count == 0
