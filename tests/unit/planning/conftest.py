"""A model server as a process, and games at places where a planner is needed."""

from collections.abc import Iterator

import pytest

from tests.rules import RulesServer


@pytest.fixture(scope="module")
def rules_server() -> Iterator[RulesServer]:
    """The rules server, which also plans. A test that changes its behaviour changes it back."""
    with RulesServer() as server:
        yield server
