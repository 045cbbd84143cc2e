"""Until when labels are waited for: a halted run decides nothing, and a resumed one has its whole time again."""

from datetime import timedelta
from pathlib import Path

import pytest

from shared.contracts.epoch import EpochFinishedRecord
from shared.contracts.events import RunState
from shared.contracts.run import RunConfig, RunRecord
from shared.state.label_deadline import deadline_of_run
from shared.state.runs import RunRecords
from shared.store import keys
from shared.store.memory import MemoryStore

SAMPLE = Path(__file__).parents[2] / "contract" / "samples" / "epoch-finished.json"
FINISHED = EpochFinishedRecord.from_bytes(SAMPLE.read_bytes())
LATER = FINISHED.created + timedelta(hours=1)
MINUTE = timedelta(minutes=1)


async def runs_in(state: RunState) -> RunRecords:
    """The records of the epoch's run, which came into this state an hour after the epoch's end."""
    runs = RunRecords(MemoryStore())
    await runs.create(
        RunRecord(run=FINISHED.run, revision=0, state=state, config=RunConfig(), created=LATER, updated=LATER)
    )
    return runs


@pytest.mark.parametrize("state", ["stopping", "stopped", "failed"])
async def test_nothing_is_decided_while_the_run_is_halted(state: RunState) -> None:
    assert await deadline_of_run(await runs_in(state), FINISHED, 60) is None


async def test_a_resumed_runs_judges_have_their_whole_time_again() -> None:
    assert await deadline_of_run(await runs_in("running"), FINISHED, 60) == LATER + MINUTE


async def test_an_unreadable_record_leaves_the_first_deadline() -> None:
    store = MemoryStore()
    await store.put(keys.run_revision(FINISHED.run, 0), b"{")
    assert await deadline_of_run(RunRecords(store), FINISHED, 60) == FINISHED.created + MINUTE
