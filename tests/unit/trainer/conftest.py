"""A walk through the garden, one for each file of tests that asks for it."""

from collections.abc import Iterator

import pytest

from tests.unit.trainer.walked_path import GARDEN, WALK, Walked


@pytest.fixture(scope="module")
def walked() -> Iterator[Walked]:
    """The beginning of the garden's walk-through. Tests may play on in its session."""
    made = Walked(GARDEN, WALK)
    yield made
    made.session.close()
