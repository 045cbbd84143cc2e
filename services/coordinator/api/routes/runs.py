"""Routes that start, stop, resume and show runs."""

from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Response
from pydantic import AfterValidator

from services.coordinator.api.dependencies import Commands, Models, RunParam
from services.coordinator.api.models import DeletedRun, NewRun, Page, RunDetail, RunListItem, run_list_item
from services.coordinator.api.run_position import RunPosition, check_position
from services.coordinator.readmodels.read_models import ReadModels
from shared.contracts.events import RunState
from shared.contracts.ids import RunId, Tag
from shared.contracts.progress import EpochRow
from shared.contracts.run import RunRecord

router = APIRouter(tags=["runs"])
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=200,
        description="a repeated key with the same body returns the same run; with another body it is refused (409)",
    ),
]
PositionParam = Annotated[
    str | None, AfterValidator(check_position), Query(description="`next` of the previous page, or the name of a run")
]


@router.post("/runs", status_code=201, responses={200: {"description": "the run already exists: same key, same body"}})
async def start_run(
    commands: Commands, request: NewRun, response: Response, idempotency_key: IdempotencyKey = None
) -> RunRecord:
    """Start a run. It begins within seconds; follow it at /runs/{run}/events."""
    record, new = await commands.create(request, idempotency_key)
    response.status_code = 201 if new else 200
    response.headers["Location"] = f"/runs/{record.run}"
    return record


@router.post("/runs/{run}/stop", status_code=202)
async def stop_run(commands: Commands, run: RunParam) -> RunRecord:
    """Stop a run. It writes a checkpoint and is `stopped` within a minute."""
    return await commands.stop(run)


@router.post("/runs/{run}/resume", status_code=202)
async def resume_run(commands: Commands, run: RunParam) -> RunRecord:
    """Resume a stopped or failed run from its last checkpoint. Finished work is not repeated."""
    return await commands.resume(run)


@router.delete("/runs/{run}")
async def delete_run(commands: Commands, run: RunParam) -> DeletedRun:
    """Delete a run that is not active, with everything that it recorded and learned. Its name stays taken.

    Deleting again removes what a process wrote meanwhile.
    """
    objects, size = await commands.delete(run)
    return DeletedRun(run=run, objects=objects, bytes=size)


@router.get("/runs")
async def list_runs(
    models: Models,
    state: Annotated[RunState | None, Query(description="only runs in this state")] = None,
    order: Annotated[Literal["newest", "oldest"], Query(description="which run comes first")] = "newest",
    after: PositionParam = None,
    limit: Annotated[int, Query(ge=1, le=1_000, description="runs per page")] = 100,
    tag: Annotated[Tag | None, Query(description="only runs with this tag")] = None,
) -> Page[RunListItem]:
    """List all runs by time of creation, newest first by default."""
    newest = order == "newest"
    tags = await models.notes.tags()
    records = [record for record in await models.runs.all() if state in (None, record.state)]
    records = [record for record in records if tag is None or tag in tags.get(record.run, ())]
    if after is not None:
        # Compare positions among all runs: the last run of the page may have left the requested state meanwhile.
        last = await _last_position(models, after)
        records = [one for one in records if (RunPosition.of(one) < last if newest else RunPosition.of(one) > last)]
    records.sort(key=RunPosition.of, reverse=newest)
    page = records[:limit]
    following = str(RunPosition.of(page[-1])) if len(records) > limit else None
    return Page(items=[run_list_item(record, tags.get(record.run, ())) for record in page], next=following)


async def _last_position(models: ReadModels, after: str) -> RunPosition:
    """The position that `after` means; NotFound for the name of a run that does not exist."""
    return RunPosition.parse(after) or RunPosition.of(await models.runs.latest(RunId(after)))


@router.get("/runs/{run}")
async def show_run(models: Models, run: RunParam) -> RunDetail:
    """Show a run's record and its progress."""
    return RunDetail(record=await models.runs.latest(run), progress=await models.progress(run))


@router.get("/runs/{run}/epochs")
async def list_epochs(models: Models, run: RunParam) -> list[EpochRow]:
    """List the finished epochs: what was played, judged and learned, and what the judging cost."""
    return await models.epochs(await models.runs.latest(run))
