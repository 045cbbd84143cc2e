"""A local Ray, for tests that train."""

from tests.unit.trainer.conftest import ray_cluster

__all__ = ["ray_cluster"]
