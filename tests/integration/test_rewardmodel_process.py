"""The reward model as a process on a real bus: killed between weights and card, it still ends in one card."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from shared.bus.open import open_bus
from shared.bus.provision import provision
from shared.bus.topology import COORDINATOR_RUNS
from shared.contracts.envelope import parse
from shared.contracts.events import RmTrained
from shared.store import keys
from shared.store.object_store import local_store
from tests.servers import NatsServer, free_ports
from tests.unit.rewardmodel.world import RUN, World


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


@pytest.mark.slow
@pytest.mark.timeout(240)  # the bus waits half a minute before it gives a dead process's event to another
async def test_killed_between_weights_and_card_another_process_finishes_the_epoch(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    world = World(store=local_store(tmp_path))
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
    finally:
        second.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(second.wait, 30) == 0
        await coordinator.close()
