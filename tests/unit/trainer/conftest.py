"""A Ray cluster on this machine, one for each file of tests that asks for it."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[None]:
    """Started without its dashboard; ray is imported only here, because most tests of the trainer need none."""
    import ray

    ray.init(address="local", num_cpus=6, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()
