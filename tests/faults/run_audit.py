"""Audits a run: compares recorded, acknowledged and judged segments, from the objects in the store alone.

The terms follow Jepsen's set tests. Acknowledged: named in the exact list of a finished epoch. Lost: acknowledged, but
without an outcome. Unexpected: has an outcome, but was never recorded. Recovered: recorded and judged, but in no list,
because the driver died before it finished the epoch; harmless. The audit reads neither the bus nor a service's memory.
"""

from collections import Counter
from dataclasses import dataclass, field

from shared.contracts.base import sha256
from shared.contracts.card import RewardModelCard
from shared.contracts.epoch import ArchiveRef, EpochFinishedRecord, EpochStart
from shared.contracts.ids import RunId
from shared.contracts.run import RunRecord
from shared.contracts.scores import SegmentScores
from shared.state.segments import list_segments
from shared.store import keys
from shared.store.port import NotFound, Store


@dataclass(slots=True)
class RunAudit:
    """The findings. `scores` maps each segment with an outcome to its status and weighted score.

    `weights` are the digests of the reward models by epoch, `shaped` the epochs that a reward model shaped. `pinned`
    and `archives` are the state archive before and after each epoch, as the orders and the finished epochs name it.
    """

    epochs: int = 0
    acknowledged: list[str] = field(default_factory=list)
    recorded: set[str] = field(default_factory=set)
    scores: dict[str, tuple[str, float | None]] = field(default_factory=dict)
    fences: list[int] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)
    shaped: set[int] = field(default_factory=set)
    pinned: list[ArchiveRef | None] = field(default_factory=list)
    archives: list[ArchiveRef | None] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def lost(self) -> set[str]:
        """Acknowledged segments without an outcome."""
        return set(self.acknowledged) - set(self.scores)

    @property
    def unexpected(self) -> set[str]:
        """Segments with an outcome that were never recorded."""
        return set(self.scores) - self.recorded

    @property
    def recovered(self) -> set[str]:
        """Recorded segments with an outcome that no finished epoch lists."""
        return set(self.scores) - set(self.acknowledged) - self.unexpected

    @property
    def duplicated(self) -> list[str]:
        """Segments that are acknowledged more than once."""
        return [name for name, times in Counter(self.acknowledged).items() if times > 1]

    def violations(self) -> list[str]:
        """One sentence per violated guarantee; empty for a sound run."""
        violations = list(self.problems)
        sets = (("lost", self.lost), ("unexpected", self.unexpected), ("duplicated", self.duplicated))
        for name, segments in sets:
            if segments:
                violations.append(f"{len(segments)} segments {name}: {sorted(segments)[:5]}")
        if self.fences != sorted(self.fences):
            violations.append(f"fences of the epochs decreased: {self.fences}")
        return violations


async def audit_run(store: Store, run: RunId) -> RunAudit:
    """Read and check every commit object of a run."""
    audit = RunAudit()
    while await store.exists(keys.epoch_start(run, audit.epochs)):
        await _audit_epoch(store, run, audit)
        audit.epochs += 1
    await _audit_records(store, run, audit)
    return audit


async def _audit_epoch(store: Store, run: RunId, audit: RunAudit) -> None:
    epoch = audit.epochs
    start = EpochStart.from_bytes(await store.get(keys.epoch_start(run, epoch)))
    audit.fences.append(start.fence)
    audit.pinned.append(start.archive)
    if start.reward_model is not None:
        audit.shaped.add(epoch)
    segments = await list_segments(store, run, epoch)
    archives = {entry.key for entry in segments}
    audit.recorded |= {place.segment for place in segments.values()}
    for entry in await store.list(keys.scores_prefix(run, epoch)):
        scores = SegmentScores.from_bytes(await store.get(entry.key))
        audit.scores[scores.segment] = (scores.status, scores.weighted)
    try:
        finished = EpochFinishedRecord.from_bytes(await store.get(keys.epoch_finished(run, epoch)))
    except NotFound:
        audit.problems.append(f"epoch {epoch} was started and never finished")
        return
    audit.archives.append(finished.archive)
    await _audit_listed_segments(store, finished, archives, audit)
    shaped_by = start.reward_model.weights_digest if start.reward_model else None
    if finished.reward_model != shaped_by:
        audit.problems.append(f"epoch {epoch} was shaped by another reward model than its start names")
    await _audit_card(store, run, epoch, audit)


async def _audit_listed_segments(
    store: Store, finished: EpochFinishedRecord, archives: set[str], audit: RunAudit
) -> None:
    for segment in finished.segments:
        audit.acknowledged.append(segment.segment)
        if segment.key not in archives:
            audit.problems.append(f"listed segment {segment.segment} has no archive")
        elif sha256(await store.get(segment.key)) != segment.digest:
            audit.problems.append(f"archive of {segment.segment} differs from its digest")


async def _audit_card(store: Store, run: RunId, epoch: int, audit: RunAudit) -> None:
    try:
        card = RewardModelCard.from_bytes(await store.get(keys.reward_model_card(run, epoch)))
    except NotFound:
        audit.problems.append(f"epoch {epoch} has no reward model card")
        return
    audit.weights.append(card.weights_digest)
    judged = sum(status == "judged" for status, _ in audit.scores.values())
    if card.segments > judged:
        audit.problems.append(f"card {epoch} uses {card.segments} segments, but only {judged} were judged so far")


async def _audit_records(store: Store, run: RunId, audit: RunAudit) -> None:
    records = [
        RunRecord.from_bytes(await store.get(entry.key)) for entry in await store.list(keys.run_record_prefix(run))
    ]
    if [record.revision for record in records] != list(range(len(records))):
        audit.problems.append("revisions of the run's record are not consecutive")
    if [record.epoch for record in records] != sorted(record.epoch for record in records):
        audit.problems.append("the run's record returned to an earlier epoch")
