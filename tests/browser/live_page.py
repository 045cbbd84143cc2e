"""The live page in a real browser: a coordinator's REST interface over a memory store, and a tab that shows it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.async_api import Browser, Page, async_playwright

from shared.contracts.driver import Assistance, ModelCalls
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig, RunRecord
from shared.runtime.health import Health, listen, serve
from shared.store import keys
from tests.required_tools import find_tool, needs
from tests.servers import free_ports
from tests.unit.coordinator.harness import RUN, SHORT_RUN, Harness

CHROMIUM = find_tool("chromium")
in_a_browser = [needs("chromium"), pytest.mark.asyncio(loop_scope="module")]
"""Marks of a file of tests whose browser lives as long as its event loop: a browser takes a second to start."""

VIEWER, OPERATOR = "viewer-token-0123456789", "operator-token-0123456789"
Theme = Literal["light", "dark"]
HELPED = Assistance(
    takeovers={"dialog": {"finished": 3, "given_up": 1}, "puzzle": {}},
    suggestions={"taken": 2, "not_taken": 1, "stale": 0, "missing": 4, "skipped": 0},
    calls={
        "dialog": ModelCalls(outcomes={"answered": 4}, answer_seconds_mean=1.5),
        "text": ModelCalls(outcomes={"answered": 3, "unavailable": 4}, answer_seconds_mean=0.25, breaker="open"),
    },
)


class Coordinator:
    """The REST interface of a harness on a port. A restart breaks every stream."""

    def __init__(self, folder: Path) -> None:
        self.harness, self.port = Harness(), free_ports(1)[0]
        self.tokens = folder / "tokens"
        self.tokens.write_text(f"viewer:{VIEWER}\noperator:{OPERATOR}\n")
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        """Serve; an earlier server and its streams end."""
        await self._stack.aclose()
        app = self.harness.app(self.tokens)
        await self._stack.enter_async_context(serve(Health(app=app), listen("127.0.0.1", self.port)))

    async def stop(self) -> None:
        await self._stack.aclose()

    def address(self, token: str = VIEWER, query: str = "") -> str:
        """The page's address with a token, as `zelda up` prints it."""
        return f"http://127.0.0.1:{self.port}/{query}#token={token}"

    async def create_run(self, run: RunId, **config: Any) -> None:
        """Create one more run."""
        now = self.harness.time
        wanted = RunConfig.model_validate(SHORT_RUN | config)
        await self.harness.models.runs.create(
            RunRecord(run=run, revision=0, state="created", config=wanted, created=now, updated=now)
        )

    async def judge(self, number: int) -> None:
        """Write the scores of one more segment of epoch 0."""
        self.harness.time = self.harness.time.replace(minute=number)
        scores = self.harness.scores(0, number)
        await self.harness.store.create(keys.score(RUN, 0, scores.segment), scores.to_bytes())


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Coordinator]:
    """A coordinator without a run."""
    coordinator = Coordinator(folder)
    await coordinator.start()
    try:
        yield coordinator
    finally:
        await coordinator.stop()


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """A browser without a tab."""
    async with async_playwright() as browsers:
        browser = await browsers.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            await browser.close()


async def open_tab(browser: Browser, address: str, *, width: int = 1280, theme: Theme = "light") -> Page:
    """A tab on the address."""
    context = await browser.new_context(viewport={"width": width, "height": 800}, color_scheme=theme)
    page = await context.new_page()
    await page.goto(address)
    return page


async def two_epochs(harness: Harness, **card: Any) -> None:
    """A run with two finished and judged epochs, whose reward models have this card."""
    await harness.create_run()
    await harness.passes()
    for epoch in range(2):
        metrics = {
            "milestones_mean": 0.5 * epoch,
            "milestones_sem": 0.1,
            "return_mean": 1.0,
            "reward/room": 0.7,
            "learner/kl": 0.01,
        }
        await harness.train(epoch, metrics=metrics, evaluation=metrics, assistance=HELPED)
        await harness.judge(epoch)
        await harness.train_reward_model(epoch, **card)
        await harness.passes()
