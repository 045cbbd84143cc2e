"""Routes that start, stop, resume and show runs."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Response

from services.coordinator.api.access import Access, Run
from services.coordinator.api.models import NewRun, Page, RunDetail, RunLine, line
from shared.contracts.events import RunState
from shared.contracts.ids import RunId
from shared.contracts.progress import EpochRow, RunProgress
from shared.contracts.run import RunRecord
from shared.store import keys
from shared.store.port import NotFound

router = APIRouter(tags=["runs"])
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=200,
        description="the same key again makes no second run; with another body it is refused",
    ),
]


@router.post("/runs", status_code=201, responses={200: {"description": "the run exists: same key, same body"}})
async def start_run(
    desk: Access, request: NewRun, response: Response, idempotency_key: IdempotencyKey = None
) -> RunRecord:
    """Start a run. It begins within seconds; watch it at /runs/{run}/events."""
    record, new = await desk.create(request, idempotency_key)
    response.status_code = 201 if new else 200
    response.headers["Location"] = f"/runs/{record.run}"
    return record


@router.post("/runs/{run}/stop", status_code=202)
async def stop_run(desk: Access, run: Run) -> RunRecord:
    """Stop a run: it writes a checkpoint and is `stopped` in under a minute."""
    return await desk.stop(run)


@router.post("/runs/{run}/resume", status_code=202)
async def resume_run(desk: Access, run: Run) -> RunRecord:
    """Let a stopped or failed run go on from its last checkpoint; finished work is not repeated."""
    return await desk.resume(run)


@router.get("/runs")
async def list_runs(
    desk: Access,
    state: Annotated[RunState | None, Query(description="only runs in this state")] = None,
    order: Literal["newest", "oldest"] = "newest",
    after: Annotated[RunId | None, Query(description="`next` of the page before")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> Page[RunLine]:
    """All runs, newest first."""
    newest = order == "newest"
    records = [record for record in await desk.runs.all() if state in (None, record.state)]
    if after is not None:
        # By its place in the order and not in this list: it may have left the state that is asked for.
        last = _place(await desk.runs.latest(after))
        records = [record for record in records if (_place(record) < last if newest else _place(record) > last)]
    records.sort(key=_place, reverse=newest)
    page = records[:limit]
    return Page(items=[line(record) for record in page], next=page[-1].run if len(records) > limit else None)


def _place(record: RunRecord) -> tuple[datetime, str]:
    """Where a run stands among all runs; it never changes."""
    return record.created, record.run


@router.get("/runs/{run}")
async def show_run(desk: Access, run: Run) -> RunDetail:
    """A run's record and where it is now."""
    record = await desk.runs.latest(run)
    try:
        progress = RunProgress.from_bytes(await desk.store.get(keys.progress(run)))
    except NotFound:
        progress = None
    return RunDetail(record=record, progress=progress)


@router.get("/runs/{run}/epochs")
async def list_epochs(desk: Access, run: Run) -> list[EpochRow]:
    """One row for each finished epoch: what was played, judged and learnt, and what it cost."""
    view = await desk.views.read(await desk.runs.latest(run))
    return await desk.reporter.rows(view)
