"""A coordinator on memory adapters with a clock that the test owns, and fakes for the other services' commits."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from starlette.types import ASGIApp

from services.coordinator.api.app import create_app
from services.coordinator.api.run_service import RunService
from services.coordinator.api.tokens import TokenFile
from services.coordinator.live.broadcaster import EventBroadcaster
from services.coordinator.live.event_source import RunEventSource
from services.coordinator.readmodels.read_models import ReadModels
from services.coordinator.readmodels.service_logs import ServiceLogs
from services.coordinator.reconcile.report_writer import ReportWriter
from services.coordinator.settings import CoordinatorSettings
from services.coordinator.wiring import make_reconciler
from shared.bus.memory import MemoryBus
from shared.bus.port import Subscription
from shared.bus.topology import JUDGE_SEGMENTS, REWARDMODEL_EPOCHS, TRAINER_RUNS
from shared.contracts.base import sha256
from shared.contracts.card import PairAccuracy, RewardModelCard
from shared.contracts.driver import Assistance, DriverHeartbeat
from shared.contracts.envelope import Envelope, parse
from shared.contracts.epoch import EpochFinishedRecord, EpochStart, SegmentRef
from shared.contracts.ids import Digest, EpisodeId, JudgeName, RunId, SegmentId
from shared.contracts.run import RunConfig, RunRecord
from shared.contracts.scores import DimensionScore, JudgeResult, SegmentScores
from shared.store import keys
from shared.store.memory import MemoryStore

RUN = RunId("demo")
START = datetime(2026, 1, 1, tzinfo=UTC)
SHORT_RUN = {"epochs": 3, "epoch_steps": 600, "batch_size": 64, "episode_length": 300, "env_runners": 1}


class Harness:
    """One store, one bus, one or more coordinators."""

    def __init__(self, kind: type[MemoryStore] = MemoryStore) -> None:
        self.time = START
        self.store = kind(clock=lambda: self.time.timestamp())
        self.bus = MemoryBus(clock=lambda: self.time.timestamp())
        self.fence: int | None = 1
        self.settings = CoordinatorSettings.model_construct(tokens_file=Path())
        self.logs: ServiceLogs | None = None
        self.now: Callable[[], datetime] = lambda: self.time
        self.wire()

    def wire(self) -> None:
        """Build a coordinator with empty caches on the current store and bus."""
        self.models = ReadModels(self.store, self.now)
        self.service = RunService(self.bus, self.store, self.models, self.now)
        self.broadcaster = EventBroadcaster(RunEventSource(self.models).poller)
        self.reports = ReportWriter(self.store, self.models, self.now)
        self.reconciler = make_reconciler(
            self.bus, self.store, self.models, self.reports, lambda: self.fence, self.now, self.settings
        )

    def app(self, tokens: Path, requests_per_s: float = 1_000, burst: int = 10_000) -> ASGIApp:
        """The REST interface with this token file."""
        return create_app(
            self.service,
            self.models,
            self.broadcaster,
            TokenFile(tokens),
            requests_per_s=requests_per_s,
            burst=burst,
            logs=self.logs,
        )

    def another_coordinator(self, fence: int | None) -> "Harness":
        """A second coordinator on the same store and bus, with its own memory and lease."""
        other = Harness()
        other.store, other.bus, other.fence = self.store, self.bus, fence
        other.now = lambda: self.time
        other.wire()
        return other

    async def passes(self, number: int = 1, seconds: float = 2.0) -> None:
        """Reconcile all runs `number` times, `seconds` apart."""
        for _ in range(number):
            await self.reconciler.reconcile_all()
            self.time += timedelta(seconds=seconds)

    async def create_run(self, **config: object) -> RunRecord:
        """Create the run."""
        now = self.time
        wanted = RunConfig.model_validate(SHORT_RUN | config)
        record = RunRecord(run=RUN, revision=0, state="created", config=wanted, created=now, updated=now)
        await self.models.runs.create(record)
        return record

    async def consume(self, subscription: Subscription) -> list[Envelope]:
        """Fetch and acknowledge all events of one subscription."""
        deliveries = await self.bus.fetch(subscription, 1_000, 0)
        for delivery in deliveries:
            await delivery.ack()
        return [parse(delivery.raw) for delivery in deliveries]

    async def trainer_events(self) -> list[str]:
        """Names of the events for the trainer."""
        return [event.data.NAME for event in await self.consume(TRAINER_RUNS)]

    async def judge_events(self) -> list[Envelope]:
        """Events for the judges."""
        return await self.consume(JUDGE_SEGMENTS)

    async def rewardmodel_events(self) -> list[Envelope]:
        """Finished epochs for the reward model."""
        return await self.consume(REWARDMODEL_EPOCHS)

    async def start_order(self, epoch: int) -> EpochStart:
        """The start order of an epoch, or NotFound."""
        return EpochStart.from_bytes(await self.store.get(keys.epoch_start(RUN, epoch)))

    async def state(self) -> str:
        """The state of the run."""
        return (await self.models.runs.latest(RUN)).state

    async def send_heartbeat(self, assistance: Assistance | None = None, epoch: int = 0) -> None:
        """Write a heartbeat of the driver."""
        heartbeat = DriverHeartbeat(run=RUN, epoch=epoch, steps=100, time=self.time, assistance=assistance)
        await self.store.put(keys.driver_heartbeat(RUN), heartbeat.to_bytes())

    async def train(self, epoch: int, segments: int = 4, **changes: object) -> EpochFinishedRecord:
        """Finish an epoch as the trainer does."""
        start = await self.start_order(epoch)
        listed = [await self._record(epoch, number) for number in range(segments)]
        values: dict[str, object] = {
            "run": RUN,
            "epoch": epoch,
            "fence": start.fence,
            "steps": 600,
            "episodes": 2,
            "seconds": 10.0,
            "segments": listed,
            "checkpoint_key": f"{keys.checkpoint_prefix(RUN, epoch)}policy.zip",
            "checkpoint_digest": sha256(b"policy"),
            "reward_model": start.reward_model.weights_digest if start.reward_model else None,
            "created": self.time,
        }
        finished = EpochFinishedRecord.model_validate(values | changes)
        await self.store.create(keys.epoch_finished(RUN, epoch), finished.to_bytes())
        return finished

    async def judge(self, epoch: int, segments: int = 4, status: str = "judged") -> None:
        """Write the scores of all segments of an epoch."""
        for number in range(segments):
            scores = self.scores(epoch, number, status)
            await self.store.create(keys.score(RUN, epoch, scores.segment), scores.to_bytes())

    async def judge_segment(self, number: int = 1) -> None:
        """Write the scores of one segment of epoch 0."""
        scores = self.scores(0, number)
        await self.store.create(keys.score(RUN, 0, scores.segment), scores.to_bytes())

    def scores(self, epoch: int, number: int, status: str = "judged") -> SegmentScores:
        """Scores of one segment: one judge, three votes, agreement 0.5."""
        name = segment(epoch, number)
        judged = status == "judged"
        dimension = DimensionScore(votes=[3, 3, 4], value=0.6, unanimous=False, spread=1)
        result = JudgeResult(
            judge=JudgeName("rules"),
            route="local",
            model="rules",
            prompt=Digest("0" * 64),
            status="judged",
            dimensions={"progress": dimension},
        )
        values = {
            "run": RUN,
            "epoch": epoch,
            "episode": name[:9],
            "segment": name,
            "segment_key": keys.segment(RUN, epoch, EpisodeId(name[:9]), name),
            "segment_digest": sha256(name.encode()),
            "rubric": "default",
            "status": status,
            "judges": [result] if judged else [],
            "weighted": 0.6 if judged else None,
            "agreement": 0.5 if judged else None,
            "created": self.time,
        }
        return SegmentScores.model_validate(values)

    async def train_reward_model(
        self, epoch: int, *, passed: bool = True, accuracy: float = 0.8, **changes: object
    ) -> RewardModelCard:
        """Write the card of an epoch's reward model."""
        usual = RewardModelCard(
            run=RUN,
            epoch=epoch,
            observation="counters/v1",
            weights_key=f"{keys.reward_model_prefix(RUN, epoch)}rm.safetensors",
            weights_digest=Digest(sha256(f"weights {epoch}".encode())),
            data_digest=Digest(sha256(b"data")),
            ensemble=5,
            segments=4,
            pairs_train=10,
            pairs_heldout=4,
            accuracy=PairAccuracy(confident=accuracy, all=accuracy, pairs=4),
            gates_passed=passed,
            seconds=1.0,
            created=self.time,
        )
        card = usual.model_copy(update=changes)
        await self.store.create(keys.reward_model_card(RUN, epoch), card.to_bytes())
        return card

    async def complete_epoch(self, epoch: int, *, passed: bool = True) -> None:
        """Finish, judge and train the reward model of one epoch, then reconcile."""
        await self.train(epoch)
        await self.judge(epoch)
        await self.train_reward_model(epoch, passed=passed)
        await self.passes()

    async def _record(self, epoch: int, number: int) -> SegmentRef:
        name = segment(epoch, number)
        episode = EpisodeId(name[:9])
        key = keys.segment(RUN, epoch, episode, name)
        digest = await self.store.put(key, name.encode())
        return SegmentRef(segment=name, episode=episode, key=key, digest=Digest(digest))


def segment(epoch: int, number: int) -> SegmentId:
    """The name of the n-th segment of an epoch."""
    return SegmentId(f"e{epoch:04d}-r00-s{number:03d}")


async def started_run(**config: object) -> Harness:
    """A run whose epoch 0 is ordered."""
    harness = Harness()
    await harness.create_run(**config)
    await harness.passes()
    return harness


async def trained_epoch(**config: object) -> Harness:
    """A run whose epoch 0 is played and waits for its judges."""
    harness = await started_run(**config)
    await harness.train(0)
    return harness


async def judged_epoch(**config: object) -> Harness:
    """A run whose epoch 0 is played and judged and waits for its reward model."""
    harness = await trained_epoch(**config)
    await harness.judge(0)
    return harness
