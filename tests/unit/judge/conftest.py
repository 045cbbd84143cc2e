"""The fixture that opens and closes judge runtimes."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.judge.rules_server.settings import Behaviour
from tests.unit.judge.harness import JudgeHarness, OpenHarness


@pytest.fixture
async def harness() -> AsyncIterator[OpenHarness]:
    opened: list[JudgeHarness] = []

    def open_harness(behaviour: Behaviour | None = None, **group: Any) -> JudgeHarness:
        opened.append(JudgeHarness(behaviour or Behaviour(), **group))
        return opened[-1]

    yield open_harness
    for one in opened:
        await one.runtime.close()
