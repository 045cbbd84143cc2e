"""Routes that list the recorded segments of an epoch and their scores."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query

from services.coordinator.api.dependencies import Models, RunParam
from services.coordinator.api.models import Page, SegmentListItem
from services.coordinator.domain.run_view import EpochView
from services.coordinator.readmodels.read_models import ReadModels
from shared.contracts.events import Epoch
from shared.contracts.ids import Digest, RunId, SegmentId
from shared.contracts.scores import SegmentScores
from shared.store import keys
from shared.store.port import ObjectEntry

router = APIRouter(tags=["records"])
EpochParam = Annotated[Epoch | None, Query(description="number of the epoch; the newest by default")]
After = Annotated[SegmentId | None, Query(description="`next` of the previous page")]
Limit = Annotated[int, Query(ge=1, le=1_000, description="items per page")]


@router.get("/runs/{run}/segments")
async def list_segments(
    models: Models, run: RunParam, epoch: EpochParam = None, after: After = None, limit: Limit = 100
) -> Page[SegmentListItem]:
    """List the recorded segments of one epoch by name, with their outcomes. Objects of other names are left out."""
    number, view = await _epoch(models, run, epoch)
    places = await models.segments(run, number)
    page, following = _page(list(places), after, limit)
    outcomes = (await models.scores.count(run, number)).outcomes
    finished = view.finished.document.segments if view and view.finished else []
    digests = {segment.segment: segment.digest for segment in finished}
    items = [_item(entry, places[entry], outcomes, digests) for entry in page]
    return Page(items=items, next=following)


@router.get("/runs/{run}/scores")
async def list_scores(
    models: Models, run: RunParam, epoch: EpochParam = None, after: After = None, limit: Limit = 100
) -> Page[SegmentScores]:
    """List the scores of one epoch: every vote with its reason, and the merged values. Damaged scores are left out."""
    number, _ = await _epoch(models, run, epoch)
    page, following = _page(await models.scores.list_epoch(run, number), after, limit)
    return Page(items=await models.scores.read_all(page), next=following)


async def _epoch(models: ReadModels, run: RunId, epoch: int | None) -> tuple[int, EpochView | None]:
    view = await models.views.read(await models.runs.latest(run))
    number = epoch if epoch is not None else view.current.epoch if view.current else 0
    return number, view.epochs[number] if number < len(view.epochs) else None


def segment_name(entry: ObjectEntry) -> str:
    """The segment's name in a key that ends in `SEGMENT.zip` or `SEGMENT.json`."""
    return entry.key.rpartition("/")[2].partition(".")[0]


def _page(found: list[ObjectEntry], after: str | None, limit: int) -> tuple[list[ObjectEntry], str | None]:
    ordered = sorted((entry for entry in found if after is None or segment_name(entry) > after), key=segment_name)
    page = ordered[:limit]
    return page, segment_name(page[-1]) if len(ordered) > limit else None


def _item(
    entry: ObjectEntry, place: keys.SegmentPlace, outcomes: dict[str, str], digests: dict[SegmentId, Digest]
) -> SegmentListItem:
    return SegmentListItem(
        segment=place.segment,
        episode=place.episode,
        epoch=place.epoch,
        key=entry.key,
        size=entry.size,
        recorded=datetime.fromtimestamp(entry.modified, UTC),
        status=outcomes.get(place.segment),
        digest=digests.get(place.segment),
    )
