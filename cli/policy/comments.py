"""What judges say about an episode of a policy. Its segments are judged like those of a run, but stored nowhere."""

import tempfile
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from services.exporter.domain.caption import caption
from services.judge.config import JudgesFile
from services.judge.offline.rejudge import RejudgeCounts, judge_run
from services.judge.runtime import JudgeRuntime
from services.judge.settings import JudgeGroup
from services.trainer.recording.builder import CompletedSegment
from shared.config.settings import StoreSettings
from shared.contracts.scores import SegmentScores
from shared.contracts.segment import SegmentManifest
from shared.game.recording.segment import read_segment
from shared.store import keys
from shared.store.open import open_store

SLOTS: Final = 4  # segments judged concurrently


class Comment(NamedTuple):
    """What the judges say about some steps. `score` is None if they abstained; `reasons` has one for each judge."""

    first_step: int
    steps: int
    score: float | None
    reasons: list[str]
    caption: list[str]
    """The lines under a video: run, steps, milestones and scores."""

    @property
    def text(self) -> str:
        """Caption and reasons, a line each."""
        return "\n".join((*self.caption, *self.reasons))


async def commented(
    segments: Sequence[CompletedSegment], file: JudgesFile, on_progress: Callable[[RejudgeCounts, str], None]
) -> list[Comment]:
    """The judges' comment on each segment of one episode. A route that stops answering is asked until it answers.

    `on_progress` gets the counts after each segment, and the reason (else "") before each retry.
    """
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(StoreSettings(url=f"file://{folder}"))
        manifests = []
        for segment in segments:
            archive = segment.archive("share")
            await store.put(segment.key, archive)
            manifests.append(read_segment(archive).manifest)
        if not manifests:
            return []
        run, epoch = manifests[0].run, manifests[0].epoch
        runtime = JudgeRuntime(store, file, JudgeGroup(cache_size=0), monitoring=False)
        await judge_run(store, runtime, run, epoch, slots=SLOTS, on_progress=on_progress)
        found = []
        for manifest in manifests:
            raw = await store.get(keys.score(run, epoch, manifest.segment, file.rubric))
            found.append(_comment(manifest, SegmentScores.from_bytes(raw)))
        return found


def _comment(manifest: SegmentManifest, scores: SegmentScores) -> Comment:
    reasons = [f"{result.judge}: {result.reasons[0]}" for result in scores.judges if result.reasons]
    return Comment(manifest.first_step, manifest.steps, scores.weighted, reasons, caption(manifest, scores))
