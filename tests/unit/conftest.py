"""A local Ray for the tests that train, started once per session and only when a test asks for it."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    """Started without its dashboard; ray is imported only here, because most tests need none.

    Its start takes ten seconds of a core. A session that a test closes leaves no actor behind.
    """
    import ray

    ray.init(address="local", num_cpus=6, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()
