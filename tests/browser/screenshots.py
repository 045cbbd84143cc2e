"""Makes the pictures of the page, the report and play in docs/images.

`python -m tests.browser.screenshots --store DIR --run RUN [--only-play]`: --only-play leaves out those of the page.

DIR is a store with a run of several epochs, as `zelda demo --store DIR` and `zelda study` leave it. The pictures of an
empty, a failed and a lost page need no run.
"""

import argparse
import asyncio
import io
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from PIL import Image
from playwright.async_api import Browser, Page

from services.coordinator.report.data import collect_report_data, place_of
from services.coordinator.report.page import render_report
from services.exporter.render import segment_pictures
from services.exporter.wiring import game_opener
from shared.contracts.epoch import EpochStart
from shared.contracts.ids import RunId
from shared.store import keys
from shared.store.object_store import local_store
from shared.store.port import Store
from tests.browser.live_page import OPERATOR, Coordinator, Theme, browsing, open_tab, serving
from tests.browser.test_page import fail

IMAGES: Final = Path(__file__).parents[2] / "docs/images"
COLOURS: Final = 128  # of a picture: a page has few, and a palette halves the file
PATIENCE_MS: Final = 60_000
HEIGHT: Final = 800  # of a tab
PLAY_SCALE: Final = 2
STEP_MS: Final = 100  # browsers slow down faster animations


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture: a view of the run, and what is clicked on it first."""

    name: str
    view: str
    theme: Theme = "light"
    width: int = 1280
    click: str | None = None
    shows: str = ".sentence"
    """What the view has drawn when it is complete."""


SHOTS: Final = (
    Shot("page-overview", "overview"),
    Shot("page-learning", "learning", "dark", shows=".u-legend"),
    Shot("page-segments", "segments", shows=".card .drawn"),
    Shot("page-segment", "segments", "dark", click=".card", shows="dialog .drawn"),
    Shot("page-map", "map", shows=".drawn"),
    Shot("page-phone", "overview", "dark", width=390),
)


async def save(page: Page, name: str, shows: str) -> None:
    """Write a picture with few colours, once everything in view is drawn."""
    await page.locator(shows).first.wait_for(timeout=PATIENCE_MS)
    for image in await page.locator("img").all():  # those out of view load later
        if await image.is_visible() and (box := await image.bounding_box()) and box["y"] < HEIGHT:
            await image.and_(page.locator(".drawn")).wait_for(timeout=PATIENCE_MS)
    picture = Image.open(io.BytesIO(await page.screenshot())).convert("RGB").quantize(COLOURS)
    picture.save(IMAGES / f"{name}.png", optimize=True)


async def of_run(coordinator: Coordinator, browser: Browser, run: RunId) -> None:
    """The views of a run."""
    for shot in SHOTS:
        address = coordinator.address(OPERATOR, f"?run={run}")
        page = await open_tab(browser, address, width=shot.width, theme=shot.theme)
        await page.click(f"#nav a[href='#/{shot.view}']")
        if shot.click:
            await page.click(shot.click)
        await save(page, shot.name, shot.shows)
        await page.context.close()


async def of_report(store: Store, browser: Browser, run: RunId) -> None:
    """The report of a run, as a file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        file.write_text(render_report(await collect_report_data(store, run)), encoding="utf-8")
        page = await open_tab(browser, file.as_uri())
        await save(page, "report", ".plays")
        await page.context.close()


async def moving_picture(store: Store, run: RunId) -> None:
    """The play with the best score as an animated picture: every step, replayed from its recording."""
    best = (await collect_report_data(store, run)).best
    if best is None:
        raise SystemExit(f"{run} has no judged segment: choose another run.")
    raw = await store.get(keys.segment(*place_of(best.scores)))
    start = EpochStart.from_bytes(await store.get(keys.epoch_start(run, best.scores.epoch)))
    game = game_opener(None)(start.config)
    shown = [Image.fromarray(one).quantize(COLOURS) for one in segment_pictures(raw, game)]
    first, *rest = (
        one.resize((PLAY_SCALE * one.width, PLAY_SCALE * one.height), Image.Resampling.NEAREST) for one in shown
    )
    first.save(IMAGES / "play.gif", save_all=True, append_images=rest, duration=STEP_MS, loop=0, optimize=True)


async def of_states(coordinator: Coordinator, browser: Browser) -> None:
    """An empty page, a failed run, and a lost connection."""
    page = await open_tab(browser, coordinator.address(OPERATOR))
    await save(page, "page-empty", "#now pre")
    harness = coordinator.harness
    harness.time = datetime.now(UTC)
    await harness.create_run()
    await harness.passes()
    await harness.train(0, metrics={"milestones_mean": 0.4, "return_mean": 3.1})  # votes would need recordings
    await fail(
        harness, "The training driver was killed for memory 5 times: lower envs_per_runner, then resume the run."
    )
    await page.reload()
    await save(page, "page-failed", ".sentence")
    await coordinator.stop()
    await save(page, "page-lost", "text=Connection lost.")


async def main(store: Path | None, run: str | None, only_play: bool) -> None:
    """Make all pictures; without a store only those that need none."""
    with tempfile.TemporaryDirectory() as folder:
        async with serving(Path(folder)) as coordinator, browsing() as browser:
            if store is not None and run is not None:
                coordinator.harness.store = local_store(store)  # type: ignore[assignment]
                coordinator.harness.wire()
                await coordinator.start()
                if not only_play:
                    await of_run(coordinator, browser, RunId(run))
                await of_report(coordinator.harness.store, browser, RunId(run))
                await moving_picture(coordinator.harness.store, RunId(run))
        if only_play:
            return
        async with serving(Path(folder)) as coordinator, browsing() as browser:
            await of_states(coordinator, browser)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, help="directory of the store that holds the run")
    parser.add_argument("--run", help="name of the run in that store")
    parser.add_argument("--only-play", action="store_true", help="only the report and the moving picture")
    arguments = parser.parse_args()
    asyncio.run(main(arguments.store, arguments.run, arguments.only_play))
