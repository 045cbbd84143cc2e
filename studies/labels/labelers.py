"""Where the labels of a trial's reward model come from: the judge, the judge with permuted scores, or an oracle.

The labelers differ only in the labels: all write score objects, from which the reward model service's own handler
trains. The newest model that passes the gates shapes the next epoch. The coordinator's rollback is left out: it reads
the true milestones, which must not choose what trains a judged arm.
"""

import asyncio
from datetime import UTC, datetime
from typing import Final, Protocol

import numpy as np

from services.coordinator.domain.reward_model_selection import is_usable
from services.coordinator.readmodels.run_views import RunViewReader
from services.judge.runtime import rules_runtime
from services.rewardmodel.settings import RewardModelGroup
from services.rewardmodel.training.pipeline import train_in_thread
from services.rewardmodel.wiring import build_handlers
from shared.bus.memory import MemoryBus
from shared.contracts.archive import read_manifest
from shared.contracts.base import sha256
from shared.contracts.card import Pooling
from shared.contracts.envelope import wrap
from shared.contracts.epoch import EpochFinishedRecord, RewardModelRef, SegmentRef
from shared.contracts.events import EpochFinished, SegmentReady
from shared.contracts.ids import Digest, JudgeName, RunId
from shared.contracts.run import RunRecord
from shared.contracts.scores import DimensionScore, JudgeResult, SegmentScores
from shared.contracts.segment import SegmentManifest
from shared.runtime.service import ServicePorts
from shared.store import keys
from shared.store.create import create_if_absent
from shared.store.port import Store
from studies.labels.accuracy import label_accuracy

UNSHUFFLED: Final = "unshuffled"  # the rubric version that keeps the scores of `shuffled` before their permutation


class RewardModelSource(Protocol):
    """Provides the reward model of the next epoch."""

    async def next_model(self, record: RunRecord, finished: EpochFinishedRecord) -> RewardModelRef | None:
        """Return the reward model that shapes the epoch after `finished`, or None."""
        ...

    async def label_accuracy(self, record: RunRecord) -> float | None:
        """Return how many pairs of segments the labels order rightly, after the last epoch; None without labels."""
        ...


class Unlabelled:
    """Base class of sources without labels."""

    async def label_accuracy(self, record: RunRecord) -> float | None:
        """Return None."""
        return None


class NoShaping(Unlabelled):
    """Never provides a reward model."""

    async def next_model(self, record: RunRecord, finished: EpochFinishedRecord) -> RewardModelRef | None:
        """Return None."""
        return None


class Labeler:
    """Base class: labels all segments, then trains and selects a reward model with the services' own code."""

    gated = True
    """Whether a model must pass the gates."""

    def __init__(self, store: Store, pooling: Pooling) -> None:
        self.store = store
        group = RewardModelGroup(pooling=pooling)
        self._handlers = build_handlers(group, ServicePorts(MemoryBus(), store, asyncio.Event()), train_in_thread)

    async def next_model(self, record: RunRecord, finished: EpochFinishedRecord) -> RewardModelRef | None:
        """Label all segments of the epoch, train a reward model, and select the newest usable one."""
        await self.label_all(record, finished)
        key = keys.epoch_finished(finished.run, finished.epoch)
        data = EpochFinished(
            run=finished.run,
            epoch=finished.epoch,
            key=key,
            digest=Digest(sha256(await self.store.get(key))),
            segments=len(finished.segments),
        )
        await self._handlers.epoch_finished(wrap(data, source="study"))
        view = await RunViewReader(self.store).read(record)
        for epoch in reversed(view.epochs):
            if epoch.card is not None and (not self.gated or is_usable(epoch.card.document)):
                return epoch.card.document.reference(epoch.card.key, epoch.card.digest)
        return None

    async def label_accuracy(self, record: RunRecord) -> float | None:
        """Return the share of pairs of the run's segments that the labels order rightly."""
        return await label_accuracy(self.store, record.run, range(record.config.planned_epochs or 1))

    async def label_all(self, record: RunRecord, finished: EpochFinishedRecord) -> None:
        """Write the score objects of the epoch's segments."""
        for ref in finished.segments:
            await self.label(finished, ref)

    async def label(self, finished: EpochFinishedRecord, ref: SegmentRef) -> None:
        """Write the score object of one segment."""
        raise TypeError(f"{type(self).__name__} must implement label()")


class JudgeLabeler(Labeler):
    """Labels with the rules judge."""

    def __init__(self, store: Store, pooling: Pooling, rubric: str = keys.RUBRIC) -> None:
        super().__init__(store, pooling)
        self._runtime = rules_runtime(store, rubric)

    async def label(self, finished: EpochFinishedRecord, ref: SegmentRef) -> None:
        """Judge the segment with the handler of the judge service."""
        data = SegmentReady(
            run=finished.run,
            epoch=finished.epoch,
            key=ref.key,
            digest=ref.digest,
            episode=ref.episode,
            segment=ref.segment,
        )
        await self._runtime.handlers.segment_ready(wrap(data, source="study"))


class ShuffledLabeler(JudgeLabeler):
    """Judges all segments, then gives each the scores of another segment of the same epoch.

    Labels, their distribution and the training stay the same; only their relation to play is lost. The gates refuse
    such models, so this arm ignores the gates: otherwise it would be the arm without a reward model.
    """

    gated = False

    def __init__(self, store: Store, pooling: Pooling) -> None:
        super().__init__(store, pooling, UNSHUFFLED)

    async def label_all(self, record: RunRecord, finished: EpochFinishedRecord) -> None:
        """Judge, then write the score objects of the epoch with permuted scores."""
        await super().label_all(record, finished)
        refs = sorted(finished.segments, key=lambda ref: ref.segment)
        order = np.random.default_rng([record.config.seed, finished.epoch]).permutation(len(refs))
        for ref, source in zip(refs, order, strict=True):
            key = keys.score(finished.run, finished.epoch, refs[source].segment, UNSHUFFLED)
            scores = moved(SegmentScores.from_bytes(await self.store.get(key)), ref, finished.run)
            await create_if_absent(self.store, keys.score(finished.run, finished.epoch, ref.segment), scores.to_bytes())


def moved(scores: SegmentScores, ref: SegmentRef, run: RunId) -> SegmentScores:
    """Return these scores as those that the reward model of `run` reads about another segment."""
    return scores.model_copy(
        update={
            "run": run,
            "episode": ref.episode,
            "segment": ref.segment,
            "segment_key": ref.key,
            "segment_digest": ref.digest,
            "rubric": keys.RUBRIC,
        }
    )


class OracleLabeler(Labeler):
    """Labels with the share of the true milestones that a segment gained: what an ideal judge of progress would see."""

    async def label(self, finished: EpochFinishedRecord, ref: SegmentRef) -> None:
        """Score the segment from its manifest."""
        value = gained_share(read_manifest(await self.store.get(ref.key, ref.digest)))
        vote = round(value * 5)
        dimension = DimensionScore(votes=[vote], value=value, unanimous=True, spread=0)
        result = JudgeResult(
            judge=JudgeName("truth"),
            route="in-process",
            model="milestones",
            prompt=Digest("0" * 64),
            status="judged",
            dimensions={"progress": dimension},
        )
        scores = SegmentScores(
            run=finished.run,
            epoch=finished.epoch,
            episode=ref.episode,
            segment=ref.segment,
            segment_key=ref.key,
            segment_digest=ref.digest,
            rubric=keys.RUBRIC,
            status="judged",
            judges=[result],
            weights={"progress": 1.0},
            weighted=value,
            agreement=1.0,
            created=datetime.now(UTC),
        )
        await create_if_absent(self.store, keys.score(finished.run, finished.epoch, ref.segment), scores.to_bytes())


def gained_share(manifest: SegmentManifest) -> float:
    """Share of the world's milestones reached within the segment. A level at its end would rate earlier segments."""
    return (manifest.milestones_end - manifest.milestones_start) / max(1, manifest.milestones_total)
