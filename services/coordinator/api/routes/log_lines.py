"""The route that shows the log lines of a local system's processes, to operators only."""

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel

from services.coordinator.api.dependencies import Logs, Models, RunParam, require_operator
from shared.store.port import NotFound

router = APIRouter(tags=["runs"], dependencies=[Depends(require_operator)])
ELSEWHERE: Final = (
    "This coordinator reads no log files: on a cluster `oc logs deploy/zelda-trainer` prints those of the trainer, and "
    "docs/runbook.md names the other places."
)


class LogLines(BaseModel):
    """The newest lines of one process, oldest first, and the processes that have a log."""

    processes: list[str]
    process: str
    lines: list[str]


@router.get("/runs/{run}/logs")
async def show_logs(
    models: Models,
    logs: Logs,
    run: RunParam,
    process: Annotated[str, Query(max_length=40, description="e.g. trainer, judge, coordinator")] = "trainer",
    lines: Annotated[int, Query(ge=1, le=1_000, description="number of lines")] = 200,
) -> LogLines:
    """Show what a process of a local system has logged. Lines about other runs are left out."""
    await models.runs.latest(run)
    if logs is None:
        raise NotFound(ELSEWHERE)
    found = await asyncio.to_thread(logs.tail, process, lines, run)
    return LogLines(processes=logs.processes(), process=process, lines=found)
