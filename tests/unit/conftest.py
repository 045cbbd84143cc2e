"""A local Ray for the tests that train, started once per session and only when a test asks for it."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    """Started without its dashboard, in ten seconds; ray is imported only here, because most tests need none.

    All tests share it, so a test closes each training session that it opens: that ends the session's actors.
    """
    import ray

    from services.trainer.driver.session_factory import WORKERS_AT_START

    # Most sessions have no actors: as in the driver, processes that Ray starts for them would stay idle.
    os.environ.setdefault(WORKERS_AT_START, "0")
    ray.init(address="local", num_cpus=6, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()
