"""Routes that show recorded play: the segments of an epoch with their scores, one segment, pictures, rooms."""

from collections.abc import Sequence
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from services.coordinator.api.dependencies import Commands, DeadLetterCommands, ExistingRun, Models
from services.coordinator.api.models import Page
from services.coordinator.api.versions import is_known
from services.coordinator.domain.room_map import RoomMap, room_map
from services.coordinator.domain.segment_summary import SegmentSummary
from services.coordinator.readmodels.read_models import ReadModels
from shared.contracts.base import sha256
from shared.contracts.events import Epoch
from shared.contracts.ids import EpisodeId, RunId, SegmentId
from shared.contracts.scores import SegmentScores, counted_results, values_of
from shared.store import keys

router = APIRouter(tags=["play"])
EpochPath = Annotated[Epoch, Path(description="number of the epoch, from 0")]
PICTURE_AGE_S: Final = 600  # a browser may show pictures of a deleted run for so long
MAX_MAPPED: Final = 200  # archives read for one map
SEGMENT: Final = "/runs/{run}/epochs/{epoch}/episodes/{episode}/segments/{segment}"


class GallerySegment(BaseModel):
    """One recorded segment with its score. `play` is equal for segments with the same start and the same actions."""

    segment: SegmentId
    episode: EpisodeId
    epoch: int
    first_step: int
    steps: int
    frames: int = Field(description="number of key frames")
    play: str
    rooms: int = Field(description="rooms that it visits")
    milestones: int = Field(description="milestones gained within it")
    reward: float = Field(description="sum over all reward terms")
    sampled: str = Field(description="why it was recorded: share, milestone, novelty or disagreement")
    status: str | None = Field(None, description="judged, abstained or dead; null until it is judged")
    score: float | None = None
    disagreement: int | None = Field(
        None, description="largest difference of two votes of a judge on a dimension; a gated judge does not count"
    )
    novelty: float | None = Field(None, description="the judges' value of the dimension novelty, without gated judges")


class TimelineItem(BaseModel):
    """Something that happened at a step of the segment."""

    step: int
    what: str


class SegmentDetail(BaseModel):
    """One segment: figures, key frames, reward terms, what happened, and every vote."""

    summary: GallerySegment
    key_frames: list[int] = Field(description="steps of the key frames; 0 is before the first action")
    reward_terms: dict[str, float]
    reward_model: str | None = Field(None, description="weights that shaped its rewards")
    checkpoint: str | None = Field(None, description="policy that acted")
    timeline: list[TimelineItem]
    scores: SegmentScores | None = None


@router.get("/runs/{run}/epochs/{epoch}/gallery")
async def show_gallery(
    models: Models,
    run: ExistingRun,
    epoch: EpochPath,
    after: Annotated[SegmentId | None, Query(description="`next` of the previous page")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="segments per page")] = 200,
) -> Page[GallerySegment]:
    """List an epoch's recorded segments with scores and figures, by name.

    Damaged archives are left out, so a page may hold fewer segments than `limit` before the last one.
    """
    places = {
        entry: place for entry, place in (await models.segments(run, epoch)).items() if place.segment > (after or "")
    }
    page = sorted(places, key=lambda entry: places[entry].segment)[:limit]
    summaries = await models.archives.summaries(page)
    scores = await _scores(models, run, epoch, [places[entry].segment for entry in page])
    return Page(
        items=[_item(summaries[entry], scores.get(places[entry].segment)) for entry in page if entry in summaries],
        next=places[page[-1]].segment if len(places) > limit else None,
    )


@router.get(SEGMENT)
async def show_segment(
    models: Models, run: ExistingRun, epoch: EpochPath, episode: EpisodeId, segment: SegmentId
) -> SegmentDetail:
    """Show one segment: what happened in it, its rewards, and every vote with its reason."""
    place = keys.SegmentPlace(run, epoch, episode, segment)
    summary, entries = await models.archives.detail(place)
    manifest, scores = summary.manifest, (await _scores(models, run, epoch, [segment])).get(segment)
    return SegmentDetail(
        summary=_item(summary, scores),
        key_frames=manifest.key_frames,
        reward_terms=manifest.reward_terms,
        reward_model=manifest.reward_model,
        checkpoint=manifest.checkpoint,
        timeline=[TimelineItem(step=entry.step, what=entry.what) for entry in entries],
        scores=scores,
    )


@router.get(SEGMENT + "/frames/{number}", response_class=Response, responses={200: {"content": {"image/png": {}}}})
async def show_frame(
    models: Models,
    request: Request,
    run: ExistingRun,
    epoch: EpochPath,
    episode: EpisodeId,
    segment: SegmentId,
    number: Annotated[int, Path(ge=0, le=63, description="number of the key frame, from 0")],
) -> Response:
    """Show a key frame of a segment as PNG."""
    picture = await models.archives.picture(keys.SegmentPlace(run, epoch, episode, segment), number)
    headers = {"Cache-Control": f"private, max-age={PICTURE_AGE_S}", "ETag": f'"{sha256(picture)[:32]}"'}
    if is_known(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(picture, media_type="image/png", headers=headers)


@router.get(
    SEGMENT + "/video",
    response_class=Response,
    responses={
        200: {"content": {"video/mp4": {}}},
        202: {"description": "the exporter makes the video; ask again after `Retry-After` seconds"},
    },
)
async def show_video(
    commands: Commands,
    models: Models,
    letters: DeadLetterCommands,
    run: ExistingRun,
    epoch: EpochPath,
    episode: EpisodeId,
    segment: SegmentId,
) -> Response:
    """Show the video of a segment. The first request makes the exporter replay it; later ones read the result.

    404 if no video can come: the segment was exported without one, or its export failed.
    """
    place = keys.SegmentPlace(run, epoch, episode, segment)
    video = await models.archives.awaited_video(place)
    if video is not None:
        return Response(video, media_type="video/mp4", headers={"Cache-Control": f"private, max-age={PICTURE_AGE_S}"})
    await letters.require_no_failed_export(place)
    await commands.request_export(place)
    return Response(status_code=202, headers={"Retry-After": "2"})


@router.get(SEGMENT + "/potential")
async def show_potential(
    models: Models, run: ExistingRun, epoch: EpochPath, episode: EpisodeId, segment: SegmentId
) -> list[float]:
    """Show Phi before the first step and after each, by the reward model that shaped the segment.

    The exporter computes it together with the video: it is empty before, and if nothing shaped the segment.
    """
    return await models.archives.potential(keys.SegmentPlace(run, epoch, episode, segment))


@router.get("/runs/{run}/epochs/{epoch}/rooms")
async def show_rooms(models: Models, run: ExistingRun, epoch: EpochPath) -> RoomMap:
    """Show the steps in each room over an epoch's recorded segments, with a picture of each room.

    If the run keeps an archive of states, `cells` and `new_cells` show how far it reaches after the epoch.
    """
    places = await models.segments(run, epoch)
    entries = list(places)
    sample = entries[:: -(-len(entries) // MAX_MAPPED) or 1]
    summaries = await models.archives.summaries(sample)
    read = [(places[entry], summary) for entry, summary in summaries.items()]
    return room_map(len(entries), read, await models.archived_rooms(run, epoch))


async def _scores(
    models: ReadModels, run: RunId, epoch: int, segments: Sequence[SegmentId]
) -> dict[SegmentId, SegmentScores]:
    """The readable scores of these segments."""
    wanted = {keys.score(run, epoch, segment) for segment in segments}
    entries = [entry for entry in await models.scores.list_epoch(run, epoch) if entry.key in wanted]
    return {one.segment: one for one in await models.scores.read_all(entries)}


def _item(summary: SegmentSummary, scores: SegmentScores | None) -> GallerySegment:
    manifest = summary.manifest
    counted = counted_results(scores) if scores else []
    spreads = [one.spread for judge in counted for one in judge.dimensions.values()]
    return GallerySegment(
        segment=manifest.segment,
        episode=manifest.episode,
        epoch=manifest.epoch,
        first_step=manifest.first_step,
        steps=manifest.steps,
        frames=summary.frames,
        play=summary.play,
        rooms=len(summary.rooms),
        milestones=manifest.milestones_end - manifest.milestones_start,
        reward=sum(manifest.reward_terms.values()),
        sampled=manifest.sampled,
        status=scores.status if scores else None,
        score=scores.weighted if scores else None,
        disagreement=max(spreads) if spreads else None,
        novelty=values_of(counted).get("novelty"),
    )
