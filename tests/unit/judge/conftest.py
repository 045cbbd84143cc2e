"""Opens courts for the judge's tests, and closes them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.judge.rules_server.settings import Behaviour
from tests.unit.judge.bench import Bench, Open


@pytest.fixture
async def bench() -> AsyncIterator[Open]:
    opened: list[Bench] = []

    def open_bench(behaviour: Behaviour | None = None, **group: Any) -> Bench:
        opened.append(Bench(behaviour or Behaviour(), **group))
        return opened[-1]

    yield open_bench
    for one in opened:
        await one.court.close()
