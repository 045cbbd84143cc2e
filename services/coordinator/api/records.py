"""Routes that list what a run recorded and what the judges said."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query

from services.coordinator.api.access import Access, Run
from services.coordinator.api.desk import Desk
from services.coordinator.api.models import Page, SegmentLine
from services.coordinator.domain.view import EpochView
from shared.contracts.events import Epoch
from shared.contracts.ids import Digest, RunId, SegmentId
from shared.contracts.scores import SegmentScores
from shared.state.segments import recorded
from shared.store import keys
from shared.store.port import Entry

router = APIRouter(tags=["records"])
OneEpoch = Annotated[Epoch | None, Query(description="which epoch; the newest if it is missing")]
After = Annotated[SegmentId | None, Query(description="`next` of the page before")]
Limit = Annotated[int, Query(ge=1, le=1_000)]


@router.get("/runs/{run}/segments")
async def list_segments(
    desk: Access, run: Run, epoch: OneEpoch = None, after: After = None, limit: Limit = 100
) -> Page[SegmentLine]:
    """Recorded segments of one epoch, by name, with what became of them; what else lies there is passed over."""
    number, view = await _epoch(desk, run, epoch)
    places = await recorded(desk.store, run, number)
    page, following = _page(list(places), after, limit)
    outcomes = (await desk.tallies.of(run, number)).outcomes
    finished = view.finished.document.segments if view and view.finished else []
    digests = {segment.segment: segment.digest for segment in finished}
    items = [_line(entry, places[entry], outcomes, digests) for entry in page]
    return Page(items=items, next=following)


@router.get("/runs/{run}/scores")
async def list_scores(
    desk: Access, run: Run, epoch: OneEpoch = None, after: After = None, limit: Limit = 100
) -> Page[SegmentScores]:
    """Every vote on the segments of one epoch, with its reasons, and the merged values; damaged scores are left out."""
    number, _ = await _epoch(desk, run, epoch)
    page, following = _page(await desk.tallies.listed(run, number), after, limit)
    return Page(items=await desk.tallies.readable(page), next=following)


async def _epoch(desk: Desk, run: RunId, epoch: int | None) -> tuple[int, EpochView | None]:
    view = await desk.views.read(await desk.runs.latest(run))
    number = epoch if epoch is not None else view.current.epoch if view.current else 0
    return number, view.epochs[number] if number < len(view.epochs) else None


def name(entry: Entry) -> str:
    """The segment's name in a key that ends in `SEGMENT.zip` or `SEGMENT.json`."""
    return entry.key.rpartition("/")[2].partition(".")[0]


def _page(found: list[Entry], after: str | None, limit: int) -> tuple[list[Entry], str | None]:
    ordered = sorted((entry for entry in found if after is None or name(entry) > after), key=name)
    page = ordered[:limit]
    return page, name(page[-1]) if len(ordered) > limit else None


def _line(
    entry: Entry, place: keys.SegmentPlace, outcomes: dict[str, str], digests: dict[SegmentId, Digest]
) -> SegmentLine:
    return SegmentLine(
        segment=place.segment,
        episode=place.episode,
        epoch=place.epoch,
        key=entry.key,
        size=entry.size,
        recorded=datetime.fromtimestamp(entry.modified, UTC),
        status=outcomes.get(place.segment),
        digest=digests.get(place.segment),
    )
