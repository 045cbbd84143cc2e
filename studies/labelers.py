"""Where a trial's reward model comes from: labels of the judge, labels of an oracle, random weights, or nowhere.

`JudgeLabeler` and `OracleLabeler` differ only in the labels: both write score objects, from which the reward model
service's own handler trains and the coordinator's own rule selects a model.
"""

import asyncio
from datetime import UTC, datetime
from typing import Protocol

import numpy as np

from services.coordinator.domain.reward_model_selection import select_reward_model
from services.coordinator.readmodels.run_views import RunViewReader
from services.judge.config import JudgesFile, JudgeSpec
from services.judge.runtime import JudgeRuntime
from services.judge.settings import JudgeGroup
from services.rewardmodel.settings import RewardModelGroup
from services.rewardmodel.training.pipeline import train_in_thread
from services.rewardmodel.wiring import build_components
from shared import rewardnet
from shared.bus.memory import MemoryBus
from shared.contracts.archive import read_manifest
from shared.contracts.base import sha256
from shared.contracts.card import Pooling
from shared.contracts.envelope import wrap
from shared.contracts.epoch import EpochFinishedRecord, RewardModelRef, SegmentRef
from shared.contracts.events import EpochFinished, SegmentReady
from shared.contracts.ids import Digest, JudgeName
from shared.contracts.run import RunRecord
from shared.contracts.scores import DIMENSIONS, DimensionScore, JudgeResult, SegmentScores
from shared.game.observation import counters
from shared.game.recording.segment import read_segment
from shared.runtime.service import ServicePorts
from shared.store import keys
from shared.store.create import create_if_absent
from shared.store.port import Store

MEMBERS = 5
STANDARDISING_SEGMENTS = 16  # segments whose states standardise the random reward model


class RewardModelSource(Protocol):
    """Provides the reward model of the next epoch."""

    async def next_model(self, record: RunRecord, finished: EpochFinishedRecord) -> RewardModelRef | None:
        """Return the reward model that shapes the epoch after `finished`, or None."""
        ...


class NoShaping:
    """Never provides a reward model."""

    async def next_model(self, record: RunRecord, finished: EpochFinishedRecord) -> RewardModelRef | None:
        """Return None."""
        return None


class Labeler:
    """Base class: labels all segments, then trains and selects a reward model with the services' own code."""

    def __init__(self, store: Store, pooling: Pooling) -> None:
        self.store = store
        group = RewardModelGroup(streaming=False, pooling=pooling)
        self._handlers, _ = build_components(group, ServicePorts(MemoryBus(), store, asyncio.Event()), train_in_thread)

    async def next_model(self, record: RunRecord, finished: EpochFinishedRecord) -> RewardModelRef | None:
        """Label all segments of the epoch, train a reward model, and apply the coordinator's selection."""
        for ref in finished.segments:
            await self.label(finished, ref)
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
        return select_reward_model(view.epochs, record.config)

    async def label(self, finished: EpochFinishedRecord, ref: SegmentRef) -> None:
        """Write the score object of one segment."""
        raise TypeError(f"{type(self).__name__} must implement label()")


class JudgeLabeler(Labeler):
    """Labels with the rules judge in this process: the default judge of `zelda up`."""

    def __init__(self, store: Store, pooling: Pooling) -> None:
        super().__init__(store, pooling)
        spec = JudgeSpec(name=JudgeName("rules"), kind="rules", dimensions=DIMENSIONS, votes=(1,))
        self._runtime = JudgeRuntime(store, JudgesFile(judges=(spec,)), JudgeGroup(), monitoring=False)

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


class OracleLabeler(Labeler):
    """Labels with the share of true milestones at the end of a segment: what an ideal judge would know."""

    async def label(self, finished: EpochFinishedRecord, ref: SegmentRef) -> None:
        """Score the segment from its manifest."""
        manifest = read_manifest(await self.store.get(ref.key, ref.digest))
        value = manifest.milestones_end / max(1, manifest.milestones_total)
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


class RandomRewardModel:
    """A random reward model of the same shape and scale: the control for the effect of the labels."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def next_model(self, record: RunRecord, finished: EpochFinishedRecord) -> RewardModelRef | None:
        """Return the model; create it after epoch 0, standardised on the states of that epoch."""
        prefix = keys.reward_model_prefix(finished.run, 0)
        if finished.epoch == 0:
            archives = [await self.store.get(ref.key, ref.digest) for ref in finished.segments[:STANDARDISING_SEGMENTS]]
            counts = [read_segment(archive).counters for archive in archives]
            states = np.concatenate([counters.features(one) for one in counts if one is not None])
            untrained = rewardnet.random_weights(MEMBERS, record.config.seed, counters.VERSION)
            raw = rewardnet.standardise(untrained, states)
            await self.store.put(f"{prefix}rm.safetensors", rewardnet.dump(raw))
        weights = await self.store.get(f"{prefix}rm.safetensors")
        return RewardModelRef(
            epoch=0,
            weights_key=f"{prefix}rm.safetensors",
            weights_digest=Digest(sha256(weights)),
            card_key=f"{prefix}rm.safetensors",
            card_digest=Digest(sha256(weights)),
        )
