"""`kill -9` of each service at three moments, and purged streams: the run ends with the same segments and scores.

Five services times three moments are fifteen kills. Five kills share a run, at different moments or in other epochs.
So three runs cover every pair of service and moment. In the third run, bus and rules judge are killed as well.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from services.exporter.domain.manifest import MANIFEST
from shared.store import keys
from tests.faults.fault_injection import purge_streams
from tests.faults.live_system import RUN, LiveSystem, live_system
from tests.faults.run_audit import RunAudit

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

Condition = Callable[[LiveSystem, int], Awaitable[bool]]
RECORDING, JUDGING, LEARNING = LiveSystem.has_segments, LiveSystem.has_scores, LiveSystem.has_finished
KillPlan = list[tuple[int, Condition, str]]

# Two epochs cover every moment before, during and after the transition between them. An epoch is long enough for a
# driver to notice that it is orphaned with much left to do; half of its 36 segments are recorded. The archive of states
# must end with the same cells, and each order must name it.
PLAY: Final[dict[str, Any]] = {
    "epochs": 2,
    "epoch_steps": 3_600,
    "sampling": {"budget": 18},
    "restarts": {"share": 0.5},
}
# So that kills of the exporter interrupt work. Without pictures an export replays its segment in a tenth of a second.
EXPORTS = {"ZELDA_EXPORT__POLICY": "all", "ZELDA_EXPORT__FRAMES": "false", "ZELDA_EXPORT__VIDEO": "false"}

PLANS: dict[str, KillPlan] = {
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
        (1, RECORDING, "bus"),
        (1, JUDGING, "rules-judge"),
        (1, LEARNING, "trainer"),
        (1, LEARNING, "judge"),
    ],
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> RunAudit:
    """Audit of an undisturbed run."""
    async with live_system(tmp_path_factory.mktemp("undisturbed")) as ring:
        await ring.start_run(**PLAY)
        assert await ring.wait_for_end() == "finished"
        audit = await ring.audit()
        assert None not in (*audit.archives, *audit.pinned[1:])
        return audit


@pytest.mark.parametrize("name", PLANS)
async def test_killed_services_do_not_change_the_result(tmp_path: Path, undisturbed: RunAudit, name: str) -> None:
    async with live_system(tmp_path, exporter=EXPORTS) as ring:
        await ring.start_run(**PLAY)
        for epoch, moment, service in PLANS[name]:
            await ring.wait_until(lambda moment=moment, epoch=epoch: moment(ring, epoch))  # type: ignore[misc]
            ring.kill(service)
        assert await ring.wait_for_end() == "finished"
        assert_equal_result(await ring.audit(), undisturbed)
        await ring.wait_until(lambda: has_exported(ring, undisturbed.acknowledged))
        assert sorted(line.split()[0] for line in ring.messages) == sorted(service for *_, service in PLANS[name])


async def test_purged_streams_do_not_change_the_result(tmp_path: Path, undisturbed: RunAudit) -> None:
    async with live_system(tmp_path) as ring:
        await ring.start_run(**PLAY)
        for epoch, moment in ((0, RECORDING), (0, LEARNING), (1, JUDGING)):
            await ring.wait_until(lambda moment=moment, epoch=epoch: moment(ring, epoch))  # type: ignore[misc]
            await purge_streams(ring)
        assert await ring.wait_for_end() == "finished"
        assert_equal_result(await ring.audit(), undisturbed)


async def has_exported(ring: LiveSystem, segments: list[str]) -> bool:
    """Whether exactly these segments are exported, each once."""
    entries = await ring.store.list(keys.prefixes_of_run(RUN)["exported files"])
    manifests = [entry.key.split("/") for entry in entries if entry.key.endswith(f"/{MANIFEST}")]
    return sorted(segment for *_, segment, _ in manifests) == sorted(segments)


def assert_equal_result(audit: RunAudit, undisturbed: RunAudit) -> None:
    """Assert equal segments with equal outcomes, none lost and none duplicated."""
    assert audit.violations() == []
    assert sorted(audit.acknowledged) == sorted(undisturbed.acknowledged)
    assert audit.scores == undisturbed.scores
    assert audit.weights == undisturbed.weights
    assert audit.shaped == undisturbed.shaped
    assert (audit.pinned, audit.archives) == (undisturbed.pinned, undisturbed.archives)
