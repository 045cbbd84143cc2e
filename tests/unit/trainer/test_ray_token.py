"""A local Ray listens on all interfaces, so each driver gives its own Ray a token that nobody else can read."""

import os
import tomllib
from pathlib import Path

import pytest
import ray
from packaging.requirements import Requirement

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


def test_only_releases_that_ask_for_a_token_by_default_may_be_installed() -> None:
    """Ray 2.60 turns its token on for each local cluster (`enable_token_auth_by_default`); 2.50 does not."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    wanted = [Requirement(line) for lines in project["optional-dependencies"].values() for line in lines]
    rays = [one for one in wanted if one.name == "ray"]
    assert len(rays) == 2
    assert not any(one.specifier.contains("2.59.0") for one in rays)
    assert all(one.specifier.contains(ray.__version__) for one in rays)
