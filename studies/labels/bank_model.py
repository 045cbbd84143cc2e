"""The reward model of an arm that learns from the labelled bank: trained once per trial, the same in all epochs."""

import asyncio
from typing import Final

import numpy as np
import structlog

from services.coordinator.domain.reward_model_selection import is_usable
from services.rewardmodel.adapters.model_store import StoredCard
from services.rewardmodel.settings import RewardModelGroup
from services.rewardmodel.training.pipeline import train_in_thread
from services.rewardmodel.wiring import build_handlers
from shared.bus.memory import MemoryBus
from shared.contracts.card import Pooling
from shared.contracts.epoch import EpochFinishedRecord, RewardModelRef, SegmentRef
from shared.contracts.run import RunRecord
from shared.contracts.scores import SegmentScores
from shared.runtime.service import ServicePorts
from shared.store import keys
from shared.store.create import create_if_absent
from shared.store.port import Store
from studies.arms import BankLabels
from studies.judges.bank import Bank
from studies.labels.accuracy import label_accuracy
from studies.labels.bank_store import MODEL, RULES, read_scores
from studies.labels.labelers import moved

RUBRICS: Final[dict[BankLabels, str]] = {"llm": MODEL, "rules-bank": RULES, "llm-shuffled": MODEL}

log = structlog.get_logger(__name__)


class BankRewardModel:
    """Trains on the bank's segments of the trial's world, with the service's own code, and provides that model.

    Folds, initial weights and the permutation of `llm-shuffled` follow the trial's seed, so that the comparison of
    seeds includes their luck. As for the arm `judges`, a model must pass the gates, and one of permuted votes need not.
    """

    def __init__(self, store: Store, recorded: Store, bank: Bank, labels: BankLabels, pooling: Pooling) -> None:
        """`store` is the trial's, `recorded` the one that `record_bank` filled."""
        self._store, self._recorded, self._bank, self._labels = store, recorded, bank, labels
        ports = ServicePorts(MemoryBus(), recorded, asyncio.Event())
        self._handlers = build_handlers(RewardModelGroup(pooling=pooling), ports, train_in_thread)

    async def next_model(self, record: RunRecord, finished: EpochFinishedRecord) -> RewardModelRef | None:
        """Return the trial's model, or None if it failed its gates."""
        stored = await self._trained(record)
        if self._labels != "llm-shuffled" and not is_usable(stored.card):
            failed = [gate for gate, passed in stored.card.gates.items() if not passed]
            log.warning("reward model refused", run=record.run, failed_gates=failed)
            return None
        for key in (stored.card.weights_key, stored.key):
            await create_if_absent(self._store, key, await self._recorded.get(key))
        return stored.reference

    async def label_accuracy(self, record: RunRecord) -> float | None:
        """Return the share of the bank's pairs that the labels order rightly."""
        return await label_accuracy(self._recorded, record.run, range(1))

    async def _trained(self, record: RunRecord) -> StoredCard:
        rated = await self._scores(record.config.world, record.config.seed)
        for ref, scores in rated:
            key = keys.score(record.run, 0, ref.segment)
            await create_if_absent(self._recorded, key, moved(scores, ref, record.run).to_bytes())
        return await self._handlers.train_on_scores(record.run, record.config)

    async def _scores(self, world: str, seed: int) -> list[tuple[SegmentRef, SegmentScores]]:
        """The world's segments with their scores, or with those of another of its segments."""
        found = await read_scores(self._recorded, self._bank, world, RUBRICS[self._labels])
        order = np.arange(len(found))
        if self._labels == "llm-shuffled":
            order = np.random.default_rng(seed).permutation(len(found))
        refs = [
            SegmentRef(segment=one.segment, episode=one.episode, key=one.segment_key, digest=one.segment_digest)
            for one in found
        ]
        return [(ref, found[source]) for ref, source in zip(refs, order, strict=True)]
