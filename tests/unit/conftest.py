"""A local Ray for the tests that train, started once per session and only when a test asks for it."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    """Started without its dashboard, in ten seconds; ray is imported only here, because most tests need none.

    All tests share it, so a test closes each training session that it opens: that ends the session's actors.
    """
    import ray

    ray.init(address="local", num_cpus=6, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()
