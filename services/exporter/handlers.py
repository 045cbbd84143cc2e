"""Handles the exporter's events: decides by the export policy, exports, and returns the event to publish."""

from collections.abc import Sequence

from services.exporter.adapters.scores import ScoreLookup
from services.exporter.domain.policy import ExportPolicy, in_top_k, reached_milestone
from services.exporter.segment_exporter import SegmentExporter
from shared.contracts.archive import read_manifest
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.events import ExportRequested, ScoresReady, SegmentReady
from shared.contracts.scores import SegmentScores
from shared.store.keys import SegmentPlace
from shared.store.port import Store

SOURCE = "exporter"


class Handlers:
    """`segment.ready` triggers the policies about the segment, `scores.ready` those about its score.

    `export.requested` exports one segment whether or not the policy selects it.
    """

    def __init__(
        self, store: Store, scores: ScoreLookup, exporter: SegmentExporter, policy: ExportPolicy, top_k: int
    ) -> None:
        self._store, self._scores, self._exporter, self._policy, self._top_k = store, scores, exporter, policy, top_k

    async def handle(self, event: Envelope) -> Sequence[Envelope]:
        """Export the event's segment if the policy selects it; a repeated event returns the same export's event."""
        data = event.data
        if isinstance(data, ExportRequested) or (isinstance(data, SegmentReady) and await self._selects_segment(data)):
            place = SegmentPlace(data.run, data.epoch, data.episode, data.segment)
            exported = await self._exporter.export(place, data.digest)
        elif isinstance(data, ScoresReady) and (scores := await self._selected_scores(data)) is not None:
            place = SegmentPlace(data.run, data.epoch, scores.episode, data.segment)
            exported = await self._exporter.export(place, scores.segment_digest)
        else:
            return []
        return [wrap(exported, source=SOURCE, fence=event.fence)]

    async def _selects_segment(self, data: SegmentReady) -> bool:
        if self._policy is ExportPolicy.ALL:
            return True
        if self._policy is not ExportPolicy.MILESTONES:
            return False
        return reached_milestone(read_manifest(await self._store.get(data.key, data.digest)))

    async def _selected_scores(self, data: ScoresReady) -> SegmentScores | None:
        """The scores of a segment that the policy selects by its score, else None."""
        if not self._policy.waits_for_scores or data.status != "judged":
            return None
        scores = SegmentScores.from_bytes(await self._store.get(data.key, data.digest))
        if self._policy is ExportPolicy.JUDGED or scores.weighted is None:
            return scores
        epoch_scores = await self._scores.weighted(data.run, data.epoch)
        return scores if in_top_k(scores.weighted, epoch_scores, self._top_k) else None
