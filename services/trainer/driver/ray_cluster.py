"""Joins a Ray cluster, and makes sure that Ray has a CPU for each env runner.

RLlib waits for its env runners without a limit: without this check, for one that has no room, the driver never ends.
"""

import os
from typing import Any, Final

import ray
import structlog
from ray.util.placement_group import placement_group, remove_placement_group

from services.trainer.driver.session import STANDSTILL_S
from services.trainer.rl.session_config import UnplayableRun
from shared.errors import Fatal

log = structlog.get_logger(__name__)

JOIN_TRIES: Final = "RAY_gcs_server_port_wait_time_s"  # in Ray 2.60 the number of tries to reach a cluster's head
NOTICE_S: Final = 10  # a cluster with room gives it within a second


def join_cluster(address: str) -> None:
    """Join the Ray cluster at `address`. Raises Fatal if it is not there or refuses."""
    os.environ.setdefault(JOIN_TRIES, "2")  # each takes 40 s; by default Ray tries for 13 minutes
    try:
        ray.init(address=address, log_to_driver=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise Fatal(
            f"the driver cannot join the Ray cluster {address} ({reason}): set ZELDA_DRIVER__RAY_ADDRESS to host:port "
            "of the head of a running cluster, or unset it for a local Ray"
        ) from error


def require_room(env_runners: int, *, joined: bool, patience_s: float = STANDSTILL_S) -> None:
    """Return when Ray has a CPU for each env runner.

    Raises UnplayableRun if a local Ray has too few, and Fatal if a joined cluster has too few for `patience_s`.
    Replicas of the learner reserve no CPU.
    """
    if not env_runners:
        return
    if joined:
        _await_room(env_runners, patience_s)
    elif (cpus := _cpus()) < env_runners:
        raise UnplayableRun(
            f"each of the {env_runners} env runners needs a CPU of Ray, and Ray has {cpus:g}: raise "
            "ZELDA_DRIVER__RAY_CPUS or unset it, or lower env_runners"
        )


def _await_room(env_runners: int, patience_s: float) -> None:
    """Reserve a CPU for each env runner, and give all back: the env runners take them.

    The number of CPUs alone would not do. Other runs may use them, and a cluster that scales adds some only on request.
    """
    room: Any = placement_group([{"CPU": 1}] * env_runners)
    try:
        if room.wait(NOTICE_S):
            return
        log.warning("cpus awaited", env_runners=env_runners, cpus=_cpus(), seconds=patience_s)
        if room.wait(int(patience_s)):  # Ray takes whole seconds
            return
    finally:
        remove_placement_group(room)
    raise Fatal(
        f"each of the {env_runners} env runners needs a CPU, and the Ray cluster of {_cpus():g} CPUs had no room for "
        f"them for {patience_s:.0f} s: add workers, end other runs, or lower env_runners (`ray status` shows the CPUs)"
    )


def _cpus() -> float:
    """The CPUs of the whole cluster, used or not."""
    return float(ray.cluster_resources().get("CPU", 0))
