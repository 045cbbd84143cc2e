"""The auditor of a run: compares what was recorded, what was acknowledged and what was judged, by the objects alone.

Words as in Jepsen's set tests. Acknowledged: in the exact list of a finished epoch. Lost: acknowledged, but without an
outcome. Unexpected: an outcome of something that was never recorded. Recovered: recorded and judged, though no list
names it (the driver died before its account); harmless. Nothing here looks at the bus or at any service's memory.
"""

from collections import Counter
from dataclasses import dataclass, field

from shared.contracts.base import sha256
from shared.contracts.card import RewardModelCard
from shared.contracts.epoch import EpochFinishedRecord, EpochStart
from shared.contracts.ids import RunId
from shared.contracts.run import RunRecord
from shared.contracts.scores import SegmentScores
from shared.store import keys
from shared.store.port import NotFound, Store


@dataclass(slots=True)
class Audit:
    """What was found. `scores` maps each judged segment to its status and weighted score."""

    epochs: int = 0
    acknowledged: list[str] = field(default_factory=list)
    recorded: set[str] = field(default_factory=set)
    scores: dict[str, tuple[str, float | None]] = field(default_factory=dict)
    fences: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def lost(self) -> set[str]:
        """Acknowledged segments without an outcome."""
        return set(self.acknowledged) - set(self.scores)

    @property
    def unexpected(self) -> set[str]:
        """Outcomes of segments that nobody recorded."""
        return set(self.scores) - self.recorded

    @property
    def recovered(self) -> set[str]:
        """Outcomes of recorded segments that no account lists."""
        return set(self.scores) - set(self.acknowledged) - self.unexpected

    @property
    def doubled(self) -> list[str]:
        """Segments that the accounts name more than once."""
        return [name for name, times in Counter(self.acknowledged).items() if times > 1]

    def verdict(self) -> list[str]:
        """Everything that is wrong, one sentence each; empty if the run kept its promises."""
        wrong = list(self.problems)
        for name, found in (("lost", self.lost), ("unexpected", self.unexpected), ("doubled", self.doubled)):
            if found:
                wrong.append(f"{len(found)} segments {name}: {sorted(found)[:5]}")
        if self.fences != sorted(self.fences):
            wrong.append(f"fences of the epochs went back: {self.fences}")
        return wrong


async def audit(store: Store, run: RunId) -> Audit:
    """Look at every commit object of a run."""
    found = Audit()
    while await store.exists(keys.epoch_start(run, found.epochs)):
        await _epoch(store, run, found)
        found.epochs += 1
    await _records(store, run, found)
    return found


async def _epoch(store: Store, run: RunId, found: Audit) -> None:
    epoch = found.epochs
    order = EpochStart.from_bytes(await store.get(keys.epoch_start(run, epoch)))
    found.fences.append(order.fence)
    archives = {entry.key for entry in await store.list(keys.segments_prefix(run, epoch))}
    found.recorded |= {key.rpartition("/")[2].removesuffix(".zip") for key in archives}
    for entry in await store.list(keys.scores_prefix(run, epoch)):
        scores = SegmentScores.from_bytes(await store.get(entry.key))
        found.scores[scores.segment] = (scores.status, scores.weighted)
    try:
        account = EpochFinishedRecord.from_bytes(await store.get(keys.epoch_finished(run, epoch)))
    except NotFound:
        found.problems.append(f"epoch {epoch} was ordered and never finished")
        return
    await _account(store, account, archives, found)
    shaped = order.reward_model.weights_digest if order.reward_model else None
    if account.reward_model != shaped:
        found.problems.append(f"epoch {epoch} was shaped by another reward model than ordered")
    await _card(store, run, epoch, found)


async def _account(store: Store, account: EpochFinishedRecord, archives: set[str], found: Audit) -> None:
    for segment in account.segments:
        found.acknowledged.append(segment.segment)
        if segment.key not in archives:
            found.problems.append(f"listed segment {segment.segment} has no archive")
        elif sha256(await store.get(segment.key)) != segment.digest:
            found.problems.append(f"archive of {segment.segment} differs from its digest")


async def _card(store: Store, run: RunId, epoch: int, found: Audit) -> None:
    try:
        card = RewardModelCard.from_bytes(await store.get(keys.reward_model_card(run, epoch)))
    except NotFound:
        found.problems.append(f"epoch {epoch} has no reward model's card")
        return
    judged = sum(status == "judged" for status, _ in found.scores.values())
    if card.segments > judged:
        found.problems.append(f"card {epoch} uses {card.segments} segments, but only {judged} were judged so far")


async def _records(store: Store, run: RunId, found: Audit) -> None:
    records = [
        RunRecord.from_bytes(await store.get(entry.key)) for entry in await store.list(keys.run_record_prefix(run))
    ]
    if [record.revision for record in records] != list(range(len(records))):
        found.problems.append("revisions of the run's record are not consecutive")
    if [record.epoch for record in records] != sorted(record.epoch for record in records):
        found.problems.append("the run's record went back to an earlier epoch")
