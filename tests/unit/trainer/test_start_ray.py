"""How a driver starts its own Ray.

A local Ray listens on all interfaces, so each driver gives it a token that nobody else can read.
"""

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
import ray
from packaging.requirements import Requirement

from services.trainer.driver.ray_cluster import JOIN_TRIES, require_room
from services.trainer.driver.session_factory import USAGE_STATISTICS, WORKER_NICENESS, WORKERS_AT_START, start_ray
from services.trainer.rl.session_config import UnplayableRun
from services.trainer.settings import DriverGroup
from shared.errors import Fatal

TOKEN = "RAY_AUTH_TOKEN"


@pytest.fixture
def environments(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The environment of each Ray that would start. Before, no variable for Ray is set."""
    seen: list[dict[str, str]] = []
    for name in (TOKEN, JOIN_TRIES, USAGE_STATISTICS, WORKER_NICENESS, WORKERS_AT_START):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **_: seen.append(dict(os.environ)))
    return seen


def test_each_driver_draws_a_token(environments: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        monkeypatch.delenv(TOKEN, raising=False)
        start_ray(1, DriverGroup())
    one, other = (environment.get(TOKEN) for environment in environments)
    assert one != other
    assert all(len(bytes.fromhex(token or "")) == 32 for token in (one, other))


def test_ray_sends_no_statistics_unless_asked(
    environments: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    start_ray(1, DriverGroup())
    monkeypatch.setenv(USAGE_STATISTICS, "1")
    start_ray(1, DriverGroup())
    assert [one.get(USAGE_STATISTICS) for one in environments] == ["0", "1"]


def test_a_cluster_keeps_its_own_token(environments: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    start_ray(1, DriverGroup(ray_address="ray://head:10001"))
    monkeypatch.setenv(TOKEN, "of the cluster")
    start_ray(1, DriverGroup())
    assert [one.get(TOKEN) for one in environments] == [None, "of the cluster"]


def test_a_wrong_address_ends_the_driver_with_one_sentence(
    environments: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        environments.append(dict(os.environ))
        raise ConnectionError("Failed to connect to Ray cluster at 10.0.0.9:6379\nsecond line")

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(Fatal, match=r"cluster head:6379 \(Failed .* at 10\.0\.0\.9:6379\): set ZELDA_DRIVER__RAY_ADD"):
        start_ray(1, DriverGroup(ray_address="head:6379"))
    monkeypatch.setenv(JOIN_TRIES, "7")
    with pytest.raises(Fatal):
        start_ray(1, DriverGroup(ray_address="head:6379"))
    assert [one.get(JOIN_TRIES) for one in environments] == ["2", "7"], "Ray tries for 13 minutes"


def test_a_local_ray_with_too_few_cpus_refuses_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 2.0})
    require_room(2, joined=False)
    require_room(0, joined=False)
    with pytest.raises(UnplayableRun, match="each of the 3 env runners needs a CPU of Ray, and Ray has 2: raise ZELDA"):
        require_room(3, joined=False)


class Room:
    """CPUs that Ray reserves after this many waits."""

    def __init__(self, waits: int) -> None:
        self.waits = waits
        self.waited: list[float] = []
        self.kept = True

    def wait(self, seconds: float) -> bool:
        self.waited.append(seconds)
        return len(self.waited) > self.waits


@pytest.mark.parametrize(
    ("waits", "waited"), [(0, [10]), (1, [10, 900])], ids=["with room", "with workers that come later"]
)
def test_a_cluster_may_add_cpus_for_the_env_runners(
    waits: int, waited: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    room = reserved(Room(waits), monkeypatch)
    require_room(3, joined=True)
    assert (room.waited, room.kept) == (waited, False)


def test_a_cluster_without_room_ends_the_driver_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    room = reserved(Room(2), monkeypatch)
    with pytest.raises(
        Fatal, match=r"each of the 3 env runners .* Ray cluster of 2 CPUs had no room .* for 900 s: add"
    ):
        require_room(3, joined=True)
    assert not room.kept


def reserved(room: Room, monkeypatch: pytest.MonkeyPatch) -> Room:
    """A cluster of two CPUs, which answers a request for three with this room."""

    def reserve(bundles: Any) -> Room:
        assert bundles == [{"CPU": 1}] * 3
        return room

    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 2.0})
    monkeypatch.setattr("services.trainer.driver.ray_cluster.placement_group", reserve)
    monkeypatch.setattr(
        "services.trainer.driver.ray_cluster.remove_placement_group", lambda given: setattr(given, "kept", False)
    )
    return room


@pytest.mark.parametrize(("learners", "niceness"), [(1, None), (2, "0")])
def test_replicas_have_the_drivers_priority(
    learners: int, niceness: str | None, environments: list[dict[str, str]]
) -> None:
    start_ray(1, DriverGroup(), learners)
    assert [one.get(WORKER_NICENESS) for one in environments] == [niceness]


@pytest.mark.parametrize(
    ("env_runners", "learners", "workers"),
    [(0, 1, "0"), (2, 1, None), (0, 2, None)],
    ids=["alone", "with env runners", "with replicas"],
)
def test_a_driver_without_actors_starts_no_idle_workers(
    env_runners: int, learners: int, workers: str | None, environments: list[dict[str, str]]
) -> None:
    start_ray(env_runners, DriverGroup(), learners)
    assert [one.get(WORKERS_AT_START) for one in environments] == [workers]


def test_only_releases_that_ask_for_a_token_by_default_may_be_installed() -> None:
    """Ray 2.60 turns its token on for each local cluster (`enable_token_auth_by_default`); 2.50 does not."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    wanted = [Requirement(line) for lines in project["optional-dependencies"].values() for line in lines]
    rays = [one for one in wanted if one.name == "ray"]
    assert len(rays) == 2
    assert not any(one.specifier.contains("2.59.0") for one in rays)
    assert all(one.specifier.contains(ray.__version__) for one in rays)
