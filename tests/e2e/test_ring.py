"""The whole ring on real parts: bus server, S3 server, rules judge, five services, PPO on Bramble, five epochs.

Two systems play the same run at the same time, so that each meets other delays: name, configuration and seed are equal,
and so must be what they played, votes, models and figures. The first one is also asked everything else.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from cli.run_comparison import KINDS, Difference, RunSide, compare_runs
from cli.runs.report_files import write_report
from cli.stack.ports import PortAllocator
from cli.stack.services import SERVICES
from services.coordinator.report.data import collect_report_data
from shared.contracts.base import sha256
from shared.contracts.card import RewardModelCard
from shared.contracts.epoch import EpochStart
from shared.store import keys
from tests.faults.live_system import RUN, LiveSystem, live_system
from tests.faults.strangers import unexpected_answers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

EPOCHS = 5
"""One that nothing shapes, one shaped by a first model, and more by models that continued it after shaped play."""
PLAY_S = 800


async def test_two_equal_runs_of_five_epochs_from_post_to_report(tmp_path: Path) -> None:
    ports = PortAllocator()  # shared: they start at the same time
    async with (
        live_system(tmp_path / "system", allocator=ports) as ring,
        live_system(tmp_path / "second", allocator=ports) as second,
    ):
        await asyncio.gather(play_before_strangers(ring), play(second))
        await assert_sound(ring)
        await assert_shaped_by_each_new_model(ring)
        await assert_shown_by_commands(ring)
        await assert_equal(ring, second)
        write_report(await collect_report_data(ring.store, RUN), tmp_path / "report")
        assert ring.messages == []  # no process crashed on the way
    text = (tmp_path / "report" / "report.html").read_text()
    assert '"pictures":{"0:' in text
    rows = json.loads((tmp_path / "report" / "summary.json").read_text())["epochs"]
    assert [row["epoch"] for row in rows] == [0, 1, 2, 3, 4]
    # All services stopped on SIGTERM; the S3 server sometimes hangs at its end and is killed.
    assert [line for line in ring.messages if line.split()[0] in SERVICES] == []


async def play(ring: LiveSystem) -> None:
    """Start the run and wait for its end."""
    await ring.start_run(epochs=EPOCHS)
    assert await ring.wait_for_end(PLAY_S) == "finished"


async def play_before_strangers(ring: LiveSystem) -> None:
    """Play the run; a stranger and another user of this machine look at the system meanwhile and learn nothing."""
    await ring.start_run(epochs=EPOCHS)
    await ring.wait_for_segments(240)
    assert await unexpected_answers(ring) == []
    assert readable_by_others(ring) == []
    key = ring.system.layout.secret("s3-access-key").read_bytes()
    assert key not in (ring.system.layout.logs / "store.log").read_bytes()
    assert await ring.wait_for_end(PLAY_S) == "finished"


async def assert_sound(ring: LiveSystem) -> None:
    """Assert that no segment was lost or played in vain, and that the figures of each epoch agree with each other."""
    found = await ring.audit()
    assert found.violations() == []
    assert found.epochs == 5
    assert found.recovered == set()
    for row in await ring.request("GET", f"/runs/{RUN}/epochs"):
        assert row["steps"] == 1_200
        assert row["segments_recorded"] == row["segments_judged"] + row["segments_dead"] > 0
        assert row["votes"] >= 3 * row["segments_judged"]
        assert 0 <= row["agreement"] <= 1


async def assert_shaped_by_each_new_model(ring: LiveSystem) -> None:
    """Assert that each epoch's model shaped the next epoch, and that the second one continued the first one."""
    rows = await ring.request("GET", f"/runs/{RUN}/epochs")
    assert (await ring.audit()).shaped == {1, 2, 3, 4}, "an epoch was not shaped: a reward model missed its gates"
    for epoch in range(1, EPOCHS):
        order = EpochStart.from_bytes(await ring.store.get(keys.epoch_start(RUN, epoch)))
        assert order.reward_model is not None
        assert order.reward_model.epoch == epoch - 1
        weights = await ring.store.get(order.reward_model.weights_key)
        assert rows[epoch]["reward_model"] == order.reward_model.weights_digest == sha256(weights)
    cards = [RewardModelCard.from_bytes(await ring.store.get(keys.reward_model_card(RUN, epoch))) for epoch in (0, 1)]
    assert ["warm" in card.validation_loss for card in cards] == [False, True]


async def assert_shown_by_commands(ring: LiveSystem) -> None:
    """Assert that the commands show the finished run."""
    shown = json.loads(await zelda(ring, "run", "show", RUN, "--json"))
    assert (shown["record"]["state"], len(shown["epochs"])) == ("finished", 5)
    assert (await zelda(ring, "run", "list")).splitlines()[1].split("\t")[:2] == [RUN, "finished"]
    watched = await zelda(ring, "run", "watch", RUN, "--json")
    assert {"run", "progress", "epoch", "score"} >= {json.loads(line)["kind"] for line in watched.splitlines()}


async def assert_equal(first: LiveSystem, second: LiveSystem) -> None:
    """Assert that two runs have equal objects of every kind in every epoch."""
    compared = [one async for one in compare_runs(RunSide(first.store, RUN), RunSide(second.store, RUN))]
    assert [where(one) for one in compared if one.differing] == []
    assert len(compared) == EPOCHS * len(KINDS)
    assert all(one.equal for one in compared)
    audits = [await ring.audit() for ring in (first, second)]
    assert audits[0].weights == audits[1].weights


def where(difference: Difference) -> str:
    """Where the two runs differ."""
    return f"epoch {difference.epoch}, {difference.kind}: {difference.examples}"


async def zelda(ring: LiveSystem, *words: str) -> str:
    """Run a command against this system and return its output."""
    token = ring.system.layout.secret("viewer")
    environment = {**os.environ, "ZELDACLI_URL": ring.system.url, "ZELDACLI_TOKEN_FILE": str(token)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "cli", *words, env=environment, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert process.returncode == 0
    return said.decode()


def readable_by_others(ring: LiveSystem) -> list[str]:
    """Files of store, bus and secrets that another user of this machine could read."""
    layout = ring.system.layout
    folders = (layout.store, layout.bus, layout.secret("operator").parent)
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 10
    return [str(path) for path in files if path.stat().st_mode & 0o077 and not closed(path.parent, layout.root)]


def closed(folder: Path, root: Path) -> bool:
    """Whether this folder, or one between it and the system's root, admits only its owner."""
    between = [one for one in (folder, *folder.parents) if root in one.parents]
    return any(not one.stat().st_mode & 0o077 for one in between)
