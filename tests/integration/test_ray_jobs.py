"""A driver as a job of a real Ray cluster: submitted, found again, stopped, refused without a token. The cluster is one
head node on this machine with its job server, as KubeRay runs it."""

import asyncio
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from services.trainer.supervisor.backends.port import DriverLaunch, DriverStatus
from services.trainer.supervisor.backends.ray_jobs import RayJobsBackend
from shared.contracts.epoch import EpochFinishedRecord
from shared.errors import Transient
from shared.store import keys
from shared.store.object_store import local_store
from tests.servers import free_ports
from tests.unit.trainer.run_fixtures import CONFIG, RUN, order, run_in

pytestmark = [pytest.mark.slow, pytest.mark.timeout(420)]

ROOT = Path(__file__).resolve().parents[2]
TRAINED = CONFIG.model_copy(update={"eval_interval": 0})  # an evaluation takes longer than the training


@dataclass(frozen=True)
class Cluster:
    """Address of the job server, and the token it wants."""

    address: str
    token: str


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    pytest.importorskip("aiohttp_cors", reason="Ray's job server needs the `cluster` extra")
    (port, dashboard), token = free_ports(2), secrets.token_hex(16)
    folder = tempfile.mkdtemp(prefix="ray")  # short, because sockets lie in it; apart, or others would find our head
    environ = {
        **os.environ,
        "RAY_TMPDIR": folder,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": token,
        "PYTHONPATH": str(ROOT),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    }
    head = subprocess.Popen(
        [
            *(str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", f"--port={port}"),
            *("--num-cpus=4", "--include-dashboard=true", f"--dashboard-port={dashboard}", "--disable-usage-stats"),
            "--dashboard-agent-listen-port=0",
        ],
        env=environ,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{dashboard}"
    try:
        wait_for(address, token, head)
        yield Cluster(address, token)
    finally:
        head.terminate()
        head.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def wait_for(address: str, token: str, head: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert head.poll() is None, "the Ray head ended"
        try:
            if httpx.get(f"{address}/api/jobs/", headers={"Authorization": f"Bearer {token}"}).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(1)
    raise AssertionError("the job server did not answer within two minutes")


@pytest.fixture
async def backend(cluster: Cluster, tmp_path: Path) -> AsyncIterator[RayJobsBackend]:
    environ = {"ZELDA_STORE__URL": f"file://{tmp_path}", "ZELDA_DRIVER__IDLE_S": "2", "ZELDA_BUS__URL": "nats://x:1"}
    made = RayJobsBackend(cluster.address, environ, cluster.token)
    yield made
    await made.close()


async def until_ended(backend: RayJobsBackend, name: str) -> DriverStatus:
    for _ in range(300):
        status = await backend.status(name)
        if status.state != "running":
            return status
        await asyncio.sleep(1)
    raise AssertionError(f"{name} still runs after five minutes")


async def test_an_epoch_is_trained_by_a_job(backend: RayJobsBackend, tmp_path: Path) -> None:
    store = local_store(tmp_path)
    await run_in(store, config=TRAINED)
    await order(store, config=TRAINED)
    launch = DriverLaunch(RUN, f"demo-{secrets.token_hex(4)}")
    await backend.start(launch)
    await backend.start(launch)  # a service that was restarted meanwhile may ask again
    assert (await backend.status(launch.name)).state == "running"
    status = await until_ended(backend, launch.name)
    assert status == DriverStatus("ended"), status.reason
    account = EpochFinishedRecord.from_bytes(await store.get(keys.epoch_finished(RUN, 0)))
    assert account.steps >= 2048
    await store.get(account.checkpoint_key, account.checkpoint_digest)


async def test_a_job_that_fails_tells_why_and_an_unknown_one_has_ended(backend: RayJobsBackend) -> None:
    broken = RayJobsBackend(str(backend._client.base_url), {"ZELDA_STORE__URL": "nowhere"}, token_of(backend))
    name = f"demo-{secrets.token_hex(4)}"
    await broken.start(DriverLaunch(RUN, name))
    status = await until_ended(broken, name)
    assert status.state == "failed"
    assert name in (status.reason or "")
    assert "ZELDA_STORE__URL" in (status.reason or "")
    assert status.final  # the next driver would fail on the same configuration
    assert await backend.status("never-started") == DriverStatus("ended")
    await broken.close()


async def test_without_the_token_the_job_server_refuses(cluster: Cluster) -> None:
    stranger = RayJobsBackend(cluster.address, {}, "wrong")
    with pytest.raises(Transient, match="check its token file"):
        await stranger.status("demo")
    await stranger.close()


async def test_a_job_server_that_is_away_is_only_a_delay() -> None:
    unreachable = RayJobsBackend(f"http://127.0.0.1:{free_ports(1)[0]}", {})
    with pytest.raises(Transient, match="does not answer"):
        await unreachable.status("demo")
    await unreachable.close()


def token_of(backend: RayJobsBackend) -> str:
    return str(backend._client.headers["Authorization"]).removeprefix("Bearer ")
