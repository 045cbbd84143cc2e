"""Test harness: a run on a memory store with segments, synthetic scores, finished epochs, and the service."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from services.rewardmodel.handlers import Handlers
from services.rewardmodel.settings import RewardModelGroup
from services.rewardmodel.training.pipeline import train_in_thread
from services.rewardmodel.training_protocol import TrainFunction
from services.rewardmodel.wiring import build_handlers
from shared.bus.memory import MemoryBus
from shared.contracts.base import sha256
from shared.contracts.card import RewardModelCard
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.epoch import EpochFinishedRecord, EpochStart, SegmentRef
from shared.contracts.events import EpochFinished, RunState, ScoresReady, ScoreStatus
from shared.contracts.ids import Digest, EpisodeId, JudgeName, RunId, SegmentId
from shared.contracts.judging.pairs import OrderAnswer, PairComparison, PairSelection, SelectedPair
from shared.contracts.learning.reward_learning import LabelsConfig
from shared.contracts.run import ObservationName, RunConfig, RunRecord
from shared.contracts.scores import SegmentScores
from shared.game.recording.segment import Members, pack_state, write_segment
from shared.rewardnet import Floats
from shared.runtime.service import ServicePorts
from shared.store import keys
from shared.store.memory import MemoryStore
from shared.store.port import Store
from tests.unit.rewardmodel.synthetic_judge import rule

RUN = RunId("demo")
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
# The synthetic judge rates the mean of a segment's states, including the place.
QUICK = RewardModelGroup(view="obs/v1", pooling="mean", masked=(), poll_s=0.05, steps=60, shuffles=1)
STEPS = 12  # short segments keep the tests fast


def archive(epoch: int, episode: EpisodeId, segment: SegmentId, states: Floats, milestones: int) -> bytes:
    """A segment archive with these observations (STEPS + 1, 128)."""
    facts: dict[str, Any] = {
        "run": RUN,
        "epoch": epoch,
        "episode": episode,
        "segment": segment,
        "index": 0,
        "first_step": 300 * int(segment[-1]),
        "steps": STEPS,
        "game": "bramble:garden",
        "rom": Digest("a" * 64),
        "emulator": "pyboy 2.8.1",
        "frame_skip": 4,
        "seed": 0,
        "observation": "obs/v1",
        "ram_start": Digest("b" * 64),
        "ram_end": Digest("c" * 64),
        "key_frames": [],
        "milestones_start": 0,
        "milestones_end": milestones,
        "milestones_total": 9,
        "created": NOW,
    }
    actions = np.zeros(STEPS, np.uint8)
    return write_segment(facts, Members(["{}"] * STEPS, states, actions, actions[:0], pack_state(b"state"), {}))


def score(
    reference: SegmentRef, epoch: int, value: float, status: ScoreStatus = "judged", created: datetime = NOW
) -> SegmentScores:
    """A score object as the judges write it, with one judge's three votes."""
    vote = round(value * 5)
    dimension = {"votes": [vote] * 3, "value": vote / 5, "unanimous": True, "spread": 0}
    judge = {"judge": "rules", "route": "r", "model": "m", "prompt": "0" * 64, "status": "judged"}
    judged = status == "judged"
    return SegmentScores.model_validate(
        {
            "run": RUN,
            "epoch": epoch,
            "episode": reference.episode,
            "segment": reference.segment,
            "segment_key": reference.key,
            "segment_digest": reference.digest,
            "rubric": "default",
            "status": status,
            "judges": [{**judge, "dimensions": {"progress": dimension}}] if judged else [],
            "weights": {"progress": 1.0} if judged else {},
            "weighted": value if judged else None,
            "agreement": 1.0 if judged else None,
            "created": created,
        }
    )


@dataclass
class Harness:
    """The environment of the service. `deadline_s` is the run's judge deadline, `observation` its policy's layout,
    `seed`, `judge_interval` and `labels` the run's."""

    store: Store = field(default_factory=MemoryStore)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    deadline_s: float = 600.0
    seed: int = 0
    observation: ObservationName = "obs/v1"
    judge_interval: int = 1
    labels: LabelsConfig = field(default_factory=LabelsConfig)
    group: RewardModelGroup = QUICK
    training: TrainFunction = train_in_thread
    values: dict[SegmentId, float] = field(default_factory=dict)

    def service(self) -> Handlers:
        """New handlers on this store, as in a new process."""
        return build_handlers(self.group, ServicePorts(MemoryBus(), self.store, self.stopping), self.training)

    async def play(self, epoch: int, episodes: int = 24, each: int = 4, ended: datetime | None = None) -> Envelope:
        """Write an epoch's start, archives and finished record; return its `epoch.finished`."""
        rng = np.random.default_rng(epoch)
        config = RunConfig(
            judge_deadline_s=self.deadline_s,
            observation=self.observation,
            seed=self.seed,
            judge_interval=self.judge_interval,
            labels=self.labels,
        )
        start = EpochStart(run=RUN, epoch=epoch, fence=1, config=config, reward_model=None, created=NOW)
        await self.store.create(keys.epoch_start(RUN, epoch), start.to_bytes())
        listed = [await self._record(rng, epoch, number, index) for number in range(episodes) for index in range(each)]
        finished = EpochFinishedRecord(
            run=RUN,
            epoch=epoch,
            fence=1,
            steps=1_000,
            episodes=episodes,
            seconds=1.0,
            segments=listed,
            checkpoint_key=f"{keys.checkpoint_prefix(RUN, epoch)}all",
            checkpoint_digest=Digest("d" * 64),
            created=ended or datetime.now(UTC),
        )
        key = keys.epoch_finished(RUN, epoch)
        digest = await self.store.create(key, finished.to_bytes())
        data = EpochFinished(run=RUN, epoch=epoch, key=key, digest=Digest(digest), segments=len(listed))
        return wrap(data, source="trainer", fence=3)

    async def _record(self, rng: np.random.Generator, epoch: int, number: int, index: int) -> SegmentRef:
        episode = EpisodeId(f"e{epoch}-{number:03d}")
        segment = SegmentId(f"{episode}-s{index}")
        # Few features vary, so that a few dozen segments suffice to learn the rule.
        states = np.zeros((STEPS + 1, 128), np.float32)
        states[:, :6] = np.clip(rng.uniform(-1, 1, 6) + rng.normal(0, 0.05, (STEPS + 1, 6)), -1, 1)
        self.values[segment] = float(np.clip(rule(states).mean() / 1.7, 0, 1))
        key = keys.segment(RUN, epoch, episode, segment)
        raw = archive(epoch, episode, segment, states, milestones=epoch)
        return SegmentRef(segment=segment, episode=episode, key=key, digest=Digest(await self.store.create(key, raw)))

    async def listed(self, epoch: int) -> Sequence[SegmentRef]:
        """The exact list of a finished epoch."""
        return EpochFinishedRecord.from_bytes(await self.store.get(keys.epoch_finished(RUN, epoch))).segments

    async def judge(
        self, epoch: int, references: Sequence[SegmentRef], status: ScoreStatus = "judged", created: datetime = NOW
    ) -> list[Envelope]:
        """Write score objects; return their events."""
        events = []
        for reference in references:
            raw = score(reference, epoch, self.values[reference.segment], status, created).to_bytes()
            key = keys.score(RUN, epoch, reference.segment)
            await self.store.create(key, raw)
            digest = Digest(sha256(raw))
            data = ScoresReady(run=RUN, epoch=epoch, key=key, digest=digest, segment=reference.segment, status=status)
            events.append(wrap(data, source="judge"))
        return events

    async def select(self, epoch: int, pairs: Sequence[tuple[SegmentRef, SegmentRef]]) -> list[SelectedPair]:
        """Write the selection of the epoch's pairs, as the judge does."""
        chosen = [SelectedPair(first=first, second=second) for first, second in pairs]
        selection = PairSelection(run=RUN, epoch=epoch, rubric=keys.RUBRIC, pairs=chosen, created=NOW)
        await self.store.create(keys.pair_selection(RUN, epoch), selection.to_bytes())
        return chosen

    async def compare(self, epoch: int, pairs: Sequence[SelectedPair]) -> None:
        """Write comparisons of a judge that always prefers the better segment."""
        for pair in pairs:
            better = self.values[pair.first.segment] > self.values[pair.second.segment]
            shown_first = OrderAnswer(prompt=Digest("0" * 64), first=better, equal=0, second=not better)
            shown_second = OrderAnswer(prompt=Digest("1" * 64), first=not better, equal=0, second=better)
            comparison = PairComparison(
                run=RUN,
                epoch=epoch,
                rubric=keys.RUBRIC,
                pair=pair,
                judge=JudgeName("rules"),
                route="r",
                model="m",
                status="judged",
                forward=shown_first,
                backward=shown_second,
                label=float(better),
                created=NOW,
            )
            key = keys.pair(RUN, epoch, pair.first.segment, pair.second.segment)
            await self.store.create(key, comparison.to_bytes())

    async def set_run_state(self, state: RunState, revision: int) -> None:
        """Append a run record with this state."""
        now = datetime.now(UTC)
        record = RunRecord(run=RUN, revision=revision, state=state, config=RunConfig(), created=NOW, updated=now)
        await self.store.create(keys.run_revision(RUN, revision), record.to_bytes())

    async def corrupt(self, epoch: int, what: str) -> None:
        """Damage or delete a part of a committed model."""
        weights, card = (await self.card(epoch)).weights_key, keys.reward_model_card(RUN, epoch)
        match what:
            case "weights damaged":
                await self.store.put(weights, b"half a fi")
            case "weights gone":
                await self.store.delete(weights)
            case "card damaged":
                await self.store.put(card, b"{")

    async def card(self, epoch: int) -> RewardModelCard:
        """The committed card."""
        return RewardModelCard.from_bytes(await self.store.get(keys.reward_model_card(RUN, epoch)))
