"""The reward model service as a process on a real bus: a kill between weights and card still gives one card.

Trainings run in child processes: the service stays small, and a stop does not wait for them.
"""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from services.rewardmodel.adapters.training_process import WORKER_MODULE
from shared.bus.open import open_bus
from shared.bus.provision import provision
from shared.bus.topology import COORDINATOR_RUNS
from shared.contracts.envelope import parse
from shared.contracts.events import RmTrained
from shared.store import keys
from shared.store.object_store import local_store
from tests.child_processes import descendants_running
from tests.servers import NatsServer, free_ports
from tests.unit.rewardmodel.harness import RUN, Harness


def rewardmodel(bus: NatsServer, store: Path, **more: str) -> "subprocess.Popen[bytes]":
    settings = {
        "BUS__URL": bus.url,
        "STORE__URL": f"file://{store}",
        "HTTP__PORT": str(free_ports(1)[0]),
        "REWARDMODEL__STEPS": "60",
        "REWARDMODEL__SHUFFLES": "1",
        "REWARDMODEL__POLL_S": "0.2",
        **more,
    }
    env = {**os.environ, **{f"ZELDA_{name}": value for name, value in settings.items()}}
    return subprocess.Popen([sys.executable, "-m", "services.rewardmodel"], env=env)


async def judged_epoch(nats_server: NatsServer, folder: Path) -> Harness:
    """Publish the events of an epoch whose segments are all judged."""
    world = Harness(store=local_store(folder))
    await provision(nats_server.settings)
    finished = await world.play(0, episodes=8)
    scores = await world.judge(0, await world.listed(0))
    trainer = await open_bus(nats_server.settings, "trainer")
    await trainer.publish(finished)
    await trainer.close()
    judge = await open_bus(nats_server.settings, "judge")
    for event in scores:
        await judge.publish(event)
    await judge.close()
    return world


def runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def holds_torch(pid: int) -> bool:
    return "libtorch" in Path(f"/proc/{pid}/maps").read_text()


def peak_memory_mb(pid: int) -> float:
    """Peak resident memory of the process, in megabytes."""
    return int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]) / 1024


@pytest.mark.slow
@pytest.mark.timeout(240)  # the bus redelivers a dead process's event after half a minute
async def test_another_process_finishes_an_epoch_after_a_kill_before_the_card(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    world = await judged_epoch(nats_server, tmp_path)
    killed = rewardmodel(nats_server, tmp_path, FAILPOINTS="rewardmodel.after_weights=exit")
    assert await asyncio.to_thread(killed.wait, 60) == -signal.SIGKILL
    assert not await world.store.exists(keys.reward_model_card(RUN, 0))
    assert len(await world.store.list(keys.reward_model_prefix(RUN, 0))) == 1

    second = rewardmodel(nats_server, tmp_path)
    coordinator = await open_bus(nats_server.settings, "coordinator")
    try:
        announced: list[RmTrained] = []
        async with asyncio.timeout(110):
            while not announced:
                for delivery in await coordinator.fetch(COORDINATOR_RUNS, 10, 1.0):
                    data = parse(delivery.raw).data
                    announced += [data] if isinstance(data, RmTrained) else []
                    await delivery.ack()
        assert announced[0].key == keys.reward_model_card(RUN, 0)
        card = await world.card(0)
        names = [entry.key for entry in await world.store.list(keys.reward_model_prefix(RUN, 0)) if "rm-" in entry.key]
        assert names == [card.weights_key]
        assert not holds_torch(second.pid)
        assert peak_memory_mb(second.pid) < 150
    finally:
        second.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(second.wait, 30) == 0
        await coordinator.close()


@pytest.mark.slow
async def test_sigterm_during_a_training_kills_it_and_exits_with_code_0(tmp_path: Path) -> None:
    (tmp_path / "bus").mkdir()
    with NatsServer(tmp_path / "bus") as server:
        world = await judged_epoch(server, tmp_path / "store")
        service = rewardmodel(server, tmp_path / "store", REWARDMODEL__SHUFFLES="10", REWARDMODEL__MEMBERS="20")
        try:
            async with asyncio.timeout(60):
                while not (children := descendants_running(WORKER_MODULE, service.pid)):  # noqa: ASYNC110 - no event
                    await asyncio.sleep(0.02)
            service.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(service.wait, 20) == 0
        finally:
            service.kill()
        assert not any(map(runs, children))
        assert not await world.store.exists(keys.reward_model_card(RUN, 0))
