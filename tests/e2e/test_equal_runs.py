"""Two runs with equal name, configuration and seed on two systems are equal: what they played, votes, models, figures.

They run at the same time, so that each meets other delays.
"""

import asyncio
from pathlib import Path

import pytest

from cli.run_comparison import KINDS, Difference, RunSide, compare_runs
from tests.faults.live_system import RUN, LiveSystem, live_system

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

EPOCHS = 5


async def test_two_runs_of_five_shaped_epochs_are_equal(tmp_path: Path) -> None:
    async with live_system(tmp_path / "first") as first, live_system(tmp_path / "second") as second:
        await asyncio.gather(finish(first), finish(second))
        sides = [RunSide(ring.store, RUN) for ring in (first, second)]
        compared = [difference async for difference in compare_runs(*sides)]
        assert [line(one) for one in compared if one.differing] == []
        assert len(compared) == EPOCHS * len(KINDS)
        assert all(one.equal for one in compared)
        audits = [await ring.audit() for ring in (first, second)]
        assert audits[0].weights == audits[1].weights
        assert audits[0].shaped, "no epoch was shaped: no reward model passed its gates"


async def finish(ring: LiveSystem) -> None:
    """Start the run and wait for its end."""
    await ring.start_run(epochs=EPOCHS)
    assert await ring.wait_for_end(800) == "finished"


def line(difference: Difference) -> str:
    """Where the two runs differ."""
    return f"epoch {difference.epoch}, {difference.kind}: {difference.examples}"
