"""A local Ray listens on all interfaces, so each driver gives its own Ray a token that nobody else can read."""

import os

import pytest
import ray

from services.trainer.driver.session_factory import start_ray
from services.trainer.settings import DriverGroup

TOKEN = "RAY_AUTH_TOKEN"


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The tokens in the environment of each Ray that starts; the environment has none before."""
    seen: list[str | None] = []
    monkeypatch.setenv(TOKEN, "")
    monkeypatch.delenv(TOKEN)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **_: seen.append(os.environ.get(TOKEN)))
    return seen


def test_each_driver_draws_a_token(tokens: list[str | None], monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        monkeypatch.delenv(TOKEN, raising=False)
        start_ray(1, DriverGroup())
    one, other = tokens
    assert one != other
    assert all(len(bytes.fromhex(token or "")) == 32 for token in tokens)


def test_a_cluster_keeps_its_own_token(tokens: list[str | None], monkeypatch: pytest.MonkeyPatch) -> None:
    start_ray(1, DriverGroup(ray_address="ray://head:10001"))
    monkeypatch.setenv(TOKEN, "of the cluster")
    start_ray(1, DriverGroup())
    assert tokens == [None, "of the cluster"]
