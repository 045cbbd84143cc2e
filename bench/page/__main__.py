"""What the live page needs with 1,000 runs, one of 300 epochs and 60,000 segments: `python -m bench.page [--quick]`.

A real coordinator with bus and store serves it, Chromium opens it, and 200 idle viewers follow the long run. A page is
usable when the run, its newest epochs and its newest votes are drawn. An idle viewer is a page in the background: it
holds the stream of live updates and asks for nothing else.
"""

import asyncio
import os
import shutil
import sys
import tempfile
import time
import urllib.request
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.harness.measure import Figures, arguments, process_cpu, report
from bench.page.long_run import LONG, RecordedRun, add_long_run, add_runs, beat
from cli.console import print_status
from cli.stack.local_stack import LocalStack, StackOptions, run_stack
from cli.stack.port_owner import family
from shared.store.object_store import local_store

if TYPE_CHECKING:
    from playwright.async_api import Page

RUNS, EPOCHS, SEGMENTS, VIEWERS = 1_000, 300, 200, 200
SETTLED_S: Final = 125.0  # the coordinator caches a run's record two minutes after its last change
WATCH_S: Final = 30.0
MEMORY: Final = ("VmRSS", "VmHWM")  # now, and at its peak
PATIENCE_MS: Final = 120_000
USABLE: Final = """() => document.querySelectorAll('#epochs tbody tr').length >= 10
    && document.querySelectorAll('#votes li').length >= 10 && document.getElementById('runs').value === 'long'"""
VIEWS: Final = {
    "learning": "document.querySelectorAll('.u-legend').length >= 4",
    "segments": "document.querySelectorAll('.gallery .card .drawn').length >= 6",
    "map": "document.querySelectorAll('.map .drawn').length >= 1",
    "judges": "document.querySelectorAll('#view table').length >= 1",
    "configuration": "document.querySelectorAll('#view tbody tr').length >= 10",
}


def cpu_s(pid: int) -> float:
    """Seconds of processor time of a process since its start; 0 after its end."""
    try:
        return process_cpu(pid)
    except OSError:
        return 0.0


def browser_cpu_s() -> float:
    """Seconds of processor time of all processes of the browser, which are descendants of this one."""
    total = 0.0
    for pid in family(os.getpid()):
        with suppress(OSError):
            if "chrom" in Path(f"/proc/{pid}/comm").read_text():
                total += cpu_s(pid)
    return total


LOADS: Final = {"page usable, caches empty": "page_cold", "page usable, again": "page_warm"}


class Process:
    """The coordinator's memory and processor time, from /proc."""

    def __init__(self, system: LocalStack) -> None:
        process = system.process("coordinator").process
        assert process is not None
        self.pid = process.pid

    def megabytes(self, name: str) -> float:
        """`VmRSS` now, or `VmHWM`, the peak."""
        return int(Path(f"/proc/{self.pid}/status").read_text().split(f"{name}:")[1].split()[0]) / 1024

    async def load(self, seconds: float) -> float:
        """Share of one core that it uses during the next seconds."""
        began, before = time.monotonic(), cpu_s(self.pid)
        await asyncio.sleep(seconds)
        return (cpu_s(self.pid) - before) / (time.monotonic() - began)


@asynccontextmanager
async def viewers(system: LocalStack, number: int) -> AsyncIterator[None]:
    """Pages in the background: each holds the stream of the long run, reads it, and asks for nothing else."""
    token = system.layout.secret("viewer").read_text(encoding="utf-8")
    request = f"GET /runs/{LONG}/events HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\r\n".encode()

    async def follow(joined: asyncio.Event) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", system.ports.api)
        try:
            writer.write(request)
            while data := await reader.read(1 << 20):
                if b"event: score" in data:  # the votes come last
                    joined.set()
            raise SystemExit("the coordinator ended the stream of a viewer")
        finally:
            writer.close()

    watching, events = [], [asyncio.Event() for _ in range(number)]
    for joined in events:
        watching.append(asyncio.create_task(follow(joined)))
        await asyncio.sleep(0.03)  # below the rate limit of one token
    try:
        await asyncio.wait_for(asyncio.gather(*(joined.wait() for joined in events)), PATIENCE_MS / 1_000)
        await asyncio.sleep(5)
        if ended := [one for one in watching if one.done()]:
            ended[0].result()
        yield
    finally:
        for one in watching:
            one.cancel()
        await asyncio.gather(*watching, return_exceptions=True)


async def open_page(system: LocalStack) -> tuple[Figures, list[str]]:
    """Seconds until the page is usable, with empty and with warm caches, and until each view is drawn.

    Also the processor time of coordinator and browser until then: it does not depend on other load of the machine.
    """
    from playwright.async_api import async_playwright

    token = system.layout.secret("operator").read_text(encoding="utf-8")
    coordinator = Process(system)
    address, figures, errors = f"{system.url}/?run={LONG}#token={token}", Figures(), list[str]()
    async with async_playwright() as browsers:
        browser = await browsers.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for name in ("page_cold", "page_warm"):
            context = await browser.new_context(viewport={"width": 1280, "height": 800})
            page = await context.new_page()
            page.on("pageerror", lambda error: errors.append(str(error)))
            served, drawn = cpu_s(coordinator.pid), browser_cpu_s()
            await page.goto(address)
            figures[f"{name}_s"] = await seconds_until(page, USABLE)
            figures[f"{name}_served_s"] = cpu_s(coordinator.pid) - served
            figures[f"{name}_drawn_s"] = browser_cpu_s() - drawn
            if name == "page_cold":
                await context.close()
        for view, condition in VIEWS.items():
            before = await page.evaluate("performance.now() / 1000")
            await page.click(f"#nav a[href='#/{view}']")
            figures[f"view_{view}_s"] = await seconds_until(page, f"() => {condition}") - before
        await browser.close()
    return figures, errors


async def seconds_until(page: "Page", condition: str) -> float:
    """Seconds from the page's navigation until the condition holds."""
    await page.wait_for_function(condition, timeout=PATIENCE_MS, polling=20)
    return float(await page.evaluate("performance.now() / 1000"))


async def fill(store: Path, share: int) -> None:
    """Write the runs and the long run; wait until the coordinator may cache their records."""
    began, objects, source = time.monotonic(), local_store(store), RecordedRun()
    print_status(f"Writing {RUNS // share:,} runs and {EPOCHS // share * SEGMENTS:,} segments ...")
    await add_runs(objects, source, RUNS // share)
    await add_long_run(objects, source, EPOCHS // share, SEGMENTS)
    await asyncio.sleep(max(0.0, SETTLED_S / share - (time.monotonic() - began)))


async def measure(root: Path, given: Namespace) -> Figures:
    """Measure the ended run, then the same run while it trains."""
    share = 10 if given.quick else 1
    seconds, store = WATCH_S / share, root / "store"
    store.mkdir()
    await fill(store, share)
    extra = {"coordinator": {"ZELDA_LOG__LEVEL": "warning"}}
    options = StackOptions(root=root / "system", store=store, services=["coordinator"], extra=extra)
    async with run_stack(options, print_status) as system:
        process = Process(system)
        await asyncio.sleep(10)  # the first passes over all runs
        figures, errors = await open_page(system)
        if errors:
            raise SystemExit(f"the page failed: {errors[0]}")
        print_status(f"{figures}\nWatching the ended run ...")
        await asyncio.sleep(10)
        figures["ended_alone"] = await process.load(seconds)
        async with viewers(system, VIEWERS):
            figures["ended_watched"] = await process.load(seconds)
        print_status(f"{figures}\nWatching the run while it trains ...")
        await asyncio.to_thread(resume, system)
        beating = asyncio.create_task(beat(local_store(store), EPOCHS // share))
        await asyncio.sleep(20)
        figures["training_alone"] = await process.load(seconds)
        async with viewers(system, VIEWERS):
            figures["training_watched"] = await process.load(seconds)
        beating.cancel()
        figures["coordinator_mb"], figures["coordinator_peak_mb"] = (process.megabytes(name) for name in MEMORY)
    return figures


def resume(system: LocalStack) -> None:
    """Resume the long run: the coordinator works on it from now on."""
    token = system.layout.secret("operator").read_text(encoding="utf-8")
    request = urllib.request.Request(
        f"{system.url}/runs/{LONG}/resume", headers={"Authorization": f"Bearer {token}"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_MS / 1_000) as response:
        response.read()


def rows(figures: Figures) -> list[tuple[str, str]]:
    """The lines of the table."""
    cost = {name: figures[f"{name}_watched"] - figures[f"{name}_alone"] for name in ("ended", "training")}
    views = ", ".join(f"{view} {figures[f'view_{view}_s']:.1f} s" for view in VIEWS)
    return [
        *((title, _loaded(figures, name)) for title, name in LOADS.items()),
        ("views drawn after a click", views),
        (
            "coordinator, memory now and at its peak",
            f"{figures['coordinator_mb']:.0f} and {figures['coordinator_peak_mb']:.0f} MB",
        ),
        (
            f"{VIEWERS} idle viewers of an ended run",
            f"{cost['ended']:.1%} of a core (without: {figures['ended_alone']:.1%})",
        ),
        (
            f"{VIEWERS} idle viewers of a training run",
            f"{cost['training']:.1%} of a core (without: {figures['training_alone']:.1%})",
        ),
    ]


def _loaded(figures: Figures, name: str) -> str:
    served, drawn = figures[f"{name}_served_s"], figures[f"{name}_drawn_s"]
    return f"{figures[f'{name}_s']:.2f} s; processor time: coordinator {served:.2f} s, browser {drawn:.2f} s"


def main() -> int:
    """Print the table."""
    given = arguments(__doc__ or "")
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(measure(Path(folder), given))
    report("live page", rows(figures), figures, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
