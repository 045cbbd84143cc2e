"""`kill -9` of each service at three moments, and all streams purged: the run ends with the same segments and scores.

Five services and three moments make fifteen kills; five of them share a run, each in another epoch or at another
moment, so that every pair of service and moment is met once in three runs.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from nats.aio.client import Client

from shared.bus.topology import STREAMS
from tests.faults.checker import Audit
from tests.faults.stage import Stage, stage

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

Moment = Callable[[Stage, int], Awaitable[bool]]
RECORDING, JUDGING, LEARNING = Stage.recorded, Stage.judged, Stage.accounted
Plan = list[tuple[int, Moment, str]]

EPOCHS = 2  # enough for every moment before, within and after a handover from one epoch to the next

PLANS: dict[str, Plan] = {
    "first": [
        (0, RECORDING, "trainer"),
        (0, JUDGING, "judge"),
        (0, LEARNING, "rewardmodel"),
        (1, RECORDING, "coordinator"),
        (1, JUDGING, "exporter"),
    ],
    "second": [
        (0, RECORDING, "judge"),
        (0, JUDGING, "rewardmodel"),
        (0, LEARNING, "coordinator"),
        (1, RECORDING, "exporter"),
        (1, JUDGING, "trainer"),
    ],
    "third": [
        (0, RECORDING, "rewardmodel"),
        (0, JUDGING, "coordinator"),
        (0, LEARNING, "exporter"),
        (1, LEARNING, "trainer"),
        (1, LEARNING, "judge"),
    ],
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """What the run gives when nothing happens to it."""
    async with stage(tmp_path_factory.mktemp("undisturbed")) as ring:
        await ring.start(epochs=EPOCHS)
        assert await ring.ended() == "finished"
        return await ring.audit()


@pytest.mark.parametrize("name", PLANS)
async def test_killed_services_change_nothing(tmp_path: Path, undisturbed: Audit, name: str) -> None:
    async with stage(tmp_path) as ring:
        await ring.start(epochs=EPOCHS)
        for epoch, moment, service in PLANS[name]:
            await ring.until(lambda moment=moment, epoch=epoch: moment(ring, epoch))  # type: ignore[misc]
            ring.kill(service)
        assert await ring.ended() == "finished"
        compare(await ring.audit(), undisturbed)
        assert sorted(line.split()[0] for line in ring.said) == sorted(service for *_, service in PLANS[name])


async def test_a_driver_that_lost_its_service_in_mid_epoch_changes_nothing(tmp_path: Path) -> None:
    # So long that the driver sees that it is alone, and much is to come; of 32 segments, half are recorded.
    long: dict[str, Any] = {"epochs": 1, "epoch_steps": 9_600, "sampling": {"budget": 16}}
    async with stage(tmp_path / "undisturbed") as ring:
        await ring.start(**long)
        assert await ring.ended() == "finished"
        undisturbed = await ring.audit()
    async with stage(tmp_path / "killed") as ring:
        await ring.start(**long)
        await ring.until(lambda: ring.recorded(0))
        ring.kill("trainer")
        assert await ring.ended() == "finished"
        compare(await ring.audit(), undisturbed)


async def test_purged_streams_change_nothing(tmp_path: Path, undisturbed: Audit) -> None:
    async with stage(tmp_path) as ring:
        await ring.start(epochs=EPOCHS)
        for epoch, moment in ((0, RECORDING), (0, LEARNING), (1, JUDGING)):
            await ring.until(lambda moment=moment, epoch=epoch: moment(ring, epoch))  # type: ignore[misc]
            await purge(ring)
        assert await ring.ended() == "finished"
        compare(await ring.audit(), undisturbed)


def compare(found: Audit, undisturbed: Audit) -> None:
    """The same segments with the same outcomes, none lost and none doubled."""
    assert found.verdict() == []
    assert sorted(found.acknowledged) == sorted(undisturbed.acknowledged)
    assert found.scores == undisturbed.scores


async def purge(ring: Stage) -> None:
    """Lose every event, as an operator could."""
    client = Client()
    password = ring.system.layout.secret("bus-password").read_text(encoding="utf-8")
    await client.connect(ring.system.settings["ZELDA_BUS__URL"], user="zelda", password=password)
    try:
        for stream in STREAMS:
            await client.jetstream().purge_stream(stream.name)
    finally:
        await client.close()
