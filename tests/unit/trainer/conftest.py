"""A Ray cluster on this machine and a walk through the garden, one for each file of tests that asks for it."""

from collections.abc import Iterator

import pytest

from tests.unit.trainer.walked_path import GARDEN, WALK, Walked


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[None]:
    """Started without its dashboard; ray is imported only here, because most tests of the trainer need none."""
    import ray

    ray.init(address="local", num_cpus=6, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def walked() -> Iterator[Walked]:
    """The beginning of the garden's walk-through. Tests may play on in its session."""
    made = Walked(GARDEN, WALK)
    yield made
    made.session.close()
