"""A coordinator and an empty browser for each test; the browser's process starts once for a file of tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser

from tests.browser.live_page import Coordinator, browsing, serving


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Browser]:
    """The browser of a file of tests."""
    async with browsing() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="module")
async def coordinator(tmp_path: Path) -> AsyncIterator[Coordinator]:
    """A coordinator without a run."""
    async with serving(tmp_path) as coordinator:
        yield coordinator


@pytest_asyncio.fixture(loop_scope="module")
async def browser(chromium: Browser, coordinator: Coordinator) -> AsyncIterator[Browser]:
    """The browser without a tab. Its tabs close before the coordinator stops, which waits for open streams."""
    yield chromium
    for context in chromium.contexts:
        await context.close()
