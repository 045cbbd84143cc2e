"""Until when the labels of an epoch are waited for: judges that select pairs and the reward model wait equally long."""

from datetime import datetime
from typing import Final

import structlog

from shared.contracts.epoch import EpochFinishedRecord
from shared.contracts.events import RunState
from shared.errors import Permanent
from shared.state.runs import RunRecords

HALTED_STATES: Final[frozenset[RunState]] = frozenset({"stopping", "stopped", "failed"})
log = structlog.get_logger(__name__)


async def deadline_of_run(runs: RunRecords, finished: EpochFinishedRecord, judge_deadline_s: float) -> datetime | None:
    """The deadline that counts once the one since the epoch's end is over; None while the run is halted.

    It counts from the last change of the run's record, so that a resumed run's judges have their whole time again. What
    is decided at a deadline is final; so nothing is decided while the run is halted: the coordinator republishes the
    epoch's event after a resume. An unreadable record must not prevent a training: then the first deadline stays.
    """
    try:
        record = await runs.latest(finished.run)
    except Permanent as error:
        log.warning("run record unreadable", run=finished.run, error=str(error))
        return finished.deadline(judge_deadline_s)
    if record.state in HALTED_STATES:
        return None
    return finished.deadline(judge_deadline_s, record.updated)
