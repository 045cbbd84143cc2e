"""A model server as a process, and games at places where a planner is needed."""

from collections.abc import Iterator

import pytest

from services.trainer.planning.room_facts import facts_json
from tests.rules import RulesServer
from tests.unit.executor.played import played


@pytest.fixture(scope="module")
def rules_server() -> Iterator[RulesServer]:
    """The rules server, which also plans. A test that changes its behaviour changes it back."""
    with RulesServer() as server:
        yield server


@pytest.fixture(scope="module")
def facts() -> str:
    """The garden's bower, with an open puzzle."""
    with played("garden") as game:
        game.put(0, 0x02, (4, 6))
        return facts_json(game.view, puzzle=True)
