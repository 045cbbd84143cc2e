"""What the exporter does with an event: decide by the policy, export, and say so."""

from collections.abc import Sequence

from services.exporter.adapters.scores import Scores
from services.exporter.domain.policy import ExportPolicy, among_best, reached_milestone
from services.exporter.export import Exporter
from shared.contracts.archive import read_manifest
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.events import ScoresReady, SegmentReady
from shared.contracts.scores import SegmentScores
from shared.store.port import Store

SOURCE = "exporter"


class Handlers:
    """`segment.ready` decides for policies about the segment, `scores.ready` for those about its score."""

    def __init__(self, store: Store, scores: Scores, exporter: Exporter, policy: ExportPolicy, top_k: int) -> None:
        self._store, self._scores, self._exporter, self._policy, self._top_k = store, scores, exporter, policy, top_k

    async def handle(self, event: Envelope) -> Sequence[Envelope]:
        """Export the event's segment if the policy says so; a repeated event announces the same export again."""
        data = event.data
        if isinstance(data, SegmentReady) and await self._by_itself(data):
            done = await self._exporter.export(data.run, data.epoch, data.episode, data.segment, data.digest)
        elif isinstance(data, ScoresReady) and (scores := await self._by_scores(data)) is not None:
            done = await self._exporter.export(
                data.run, data.epoch, scores.episode, data.segment, scores.segment_digest
            )
        else:
            return []
        return [wrap(done, source=SOURCE, fence=event.fence, traceparent=event.traceparent)]

    async def _by_itself(self, data: SegmentReady) -> bool:
        if self._policy is ExportPolicy.ALL:
            return True
        if self._policy is not ExportPolicy.MILESTONES:
            return False
        return reached_milestone(read_manifest(await self._store.get(data.key, data.digest)))

    async def _by_scores(self, data: ScoresReady) -> SegmentScores | None:
        if not self._policy.waits_for_scores or data.status != "judged":
            return None
        scores = SegmentScores.from_bytes(await self._store.get(data.key, data.digest))
        if self._policy is ExportPolicy.JUDGED or scores.weighted is None:
            return scores
        so_far = await self._scores.weighted(data.run, data.epoch)
        return scores if among_best(scores.weighted, so_far, self._top_k) else None
