"""The services of a simulation: their real handlers, state machines and loops' bodies, over simulated ports.

Left out: what decides nothing (reports, ledgers, exports), and what only computes (votes and training are functions of
the bytes that they get).
"""

import asyncio
import hashlib
import random
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import numpy as np

from services.coordinator.api.run_service import RunService
from services.coordinator.domain.run_view import RunView
from services.coordinator.handlers import Handlers as CoordinatorHandlers
from services.coordinator.readmodels.read_models import ReadModels
from services.coordinator.reconcile.report_writer import ReportWriter
from services.coordinator.settings import CoordinatorSettings
from services.coordinator.wiring import make_reconciler
from services.judge.domain.phases import NO_PHASE, DimensionWeights
from services.judge.pairs.pair_handler import PairHandler
from services.judge.service.handlers import Handlers as JudgeHandlers
from services.judge.service.loader import LoadedSegment
from services.judge.service.pool import PoolResult
from services.rewardmodel.adapters.model_store import RewardModelStore
from services.rewardmodel.adapters.pair_labels import PairLabelReader
from services.rewardmodel.adapters.score_cache import ScoreCache
from services.rewardmodel.domain.dataset import SegmentFeatures
from services.rewardmodel.domain.ratings import Rating
from services.rewardmodel.handlers import Handlers as RewardModelHandlers
from services.rewardmodel.score_arrivals import ScoreArrivals
from services.rewardmodel.settings import RewardModelGroup
from services.rewardmodel.training_protocol import TrainingReport, TrainingRequest, TrainingResult
from services.rewardmodel.training_runner import TrainingRunner
from services.trainer.announcer import Announcer
from services.trainer.handlers import Handlers as TrainerHandlers
from services.trainer.supervisor.driver_supervisor import DriverSupervisor
from shared.bus import topology
from shared.bus.consumer import Consumer
from shared.bus.delivery_handler import DeliveryHandler
from shared.bus.outage import OutageDetector
from shared.bus.port import ConsumerMissing
from shared.contracts.card import PairAccuracy
from shared.contracts.ids import Digest, JudgeName, RunId, SegmentId
from shared.contracts.scores import DimensionScore, JudgeResult
from shared.errors import Permanent, Transient, ZeldaError
from shared.rewardnet import dump, zero_weights
from shared.state.deleted_runs import ignore_deleted_runs
from shared.state.lease import Lease
from shared.store.port import Store
from tests.faults.simulation.clock import Clock
from tests.faults.simulation.driver import SimulatedBackend
from tests.faults.simulation.ports import ProcessDelivery, SimulatedProcess

LEASE_S: Final = 15.0
KEEP_ALIVE_S: Final = 10.0
LONG_S: Final = 10_000.0  # a handler with a longer limit waits for others
BATCH: Final = 8
GROUP: Final = RewardModelGroup(members=3, poll_s=60)
SETTINGS: Final = CoordinatorSettings.model_construct(tokens_file=Path(), quiet_s=30.0)
VIEW: Final = GROUP.view


@dataclass
class SimulatedService:
    """A running process with its consumers; `step` is one turn of its background loops."""

    process: SimulatedProcess
    consumers: dict[str, tuple[Consumer, DeliveryHandler]]
    step: Callable[[], Coroutine[Any, Any, None]] | None = None
    commands: RunService | None = None
    _loops: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def work(self, rng: random.Random) -> None:
        """One turn of its loops, and one fetch of its consumers; the last turn ends first, as in a loop."""
        for name, turn in (("step", self.step), ("consume", lambda: self._consume(rng))):
            running = self._loops.get(name)
            if turn is not None and (running is None or running.done()):
                self._loops[name] = self.process.start(tolerate(turn()))

    async def _consume(self, rng: random.Random) -> None:
        """Fetch what is due and handle it concurrently, in random order."""
        for consumer, handler in self.consumers.values():
            if not consumer.active():
                continue
            try:
                found = list(await self.process.bus.fetch(consumer.subscription, BATCH))
            except ConsumerMissing:
                await self.process.bus.ensure(consumer.subscription)
                continue
            rng.shuffle(found)
            handle = handler.handle if consumer.subscription.timeout_s < LONG_S else partial(self._handle_long, handler)
            for delivery in found:
                self.process.start(handle(delivery))

    async def _handle_long(self, handler: DeliveryHandler, delivery: ProcessDelivery) -> None:
        """Handle work that outlasts the bus's patience."""
        keeper = asyncio.create_task(_keep_alive(delivery))
        try:
            await handler.handle(delivery)
        finally:
            keeper.cancel()


async def tolerate(work: Coroutine[Any, Any, None]) -> None:
    """The loops of a service log these errors and go on; a request is refused with them."""
    try:
        await work
    except ZeldaError:
        return


async def _keep_alive(delivery: ProcessDelivery) -> None:
    while True:
        await asyncio.sleep(KEEP_ALIVE_S)
        try:
            await delivery.in_progress()
        except Transient:  # the bus is away and will redeliver
            continue


def coordinator(process: SimulatedProcess, clock: Clock) -> SimulatedService:
    """A coordinator with its lease, its reconciler and the commands of its REST interface."""
    lease = Lease(process.store, "coordinator", process.name, LEASE_S, process.servers.loop.time)
    models = ReadModels(process.store, clock.now)
    reports = _NoReports(process.store, models, clock.now)
    reconciler = make_reconciler(process.bus, process.store, models, reports, lambda: lease.fence, clock.now, SETTINGS)

    async def step() -> None:
        await lease.step()
        if lease.fence is not None:
            await reconciler.reconcile_all()

    handler = ignore_deleted_runs(process.store, CoordinatorHandlers(reconciler).handle)
    consumer = Consumer(topology.COORDINATOR_RUNS, handler, active=lambda: lease.fence is not None)
    commands = RunService(process.bus, process.store, models, clock.now)
    return SimulatedService(process, _consumers(process, clock, consumer), step, commands)


def judge(process: SimulatedProcess, clock: Clock) -> SimulatedService:
    """A judge whose votes are a function of the archive."""
    handlers = JudgeHandlers(
        process.store,
        cast(Any, _Votes()),
        cast(Any, _Archives(process.store)),
        cast(Any, _NoLedgers()),
        None,
        cast(Any, _NoGates()),
        rubric="default",
        weights=DimensionWeights(),
        min_weight=0.0,
        patience_s=600.0,
    )
    handler = ignore_deleted_runs(process.store, handlers.segment_ready)
    consumer = Consumer(topology.JUDGE_SEGMENTS, handler, on_dead=handlers.segment_dead)
    pairs = PairHandler(
        process.store, None, cast(Any, None), cast(Any, _NoLedgers()), cast(Any, _NoGates()), "default", _never
    )
    compare = ignore_deleted_runs(process.store, pairs.epoch_finished)
    epochs = Consumer(topology.JUDGE_EPOCHS, compare, on_dead=pairs.epoch_dead)
    return SimulatedService(process, _consumers(process, clock, consumer, epochs))


def reward_model(process: SimulatedProcess, clock: Clock) -> SimulatedService:
    """The reward model service; its training is a function of the ratings."""
    scores, pairs = ScoreCache(process.store), PairLabelReader(process.store)
    runner = TrainingRunner(scores, pairs, cast(Any, _Features(process.store)), GROUP, _train, _never)
    handlers = RewardModelHandlers(
        process.store, scores, pairs, RewardModelStore(process.store), runner, ScoreArrivals(), GROUP, _never, clock.now
    )
    epochs = Consumer(topology.REWARDMODEL_EPOCHS, ignore_deleted_runs(process.store, handlers.epoch_finished))
    arrivals = Consumer(topology.REWARDMODEL_SCORES, handlers.score_ready)
    return SimulatedService(process, _consumers(process, clock, arrivals, epochs))


def trainer(process: SimulatedProcess, clock: Clock, drivers: dict[str, SimulatedProcess]) -> SimulatedService:
    """The trainer service: supervisor and announcer."""
    loop = process.servers.loop
    supervisor = DriverSupervisor(process.store, SimulatedBackend(process, drivers, clock), 5, loop.time)
    announcer = Announcer(process.store, process.bus)
    handler = ignore_deleted_runs(process.store, TrainerHandlers(process.store, supervisor).run_event)
    recovered = False

    async def step() -> None:
        nonlocal recovered
        if not recovered:
            await supervisor.recover()
            recovered = True
        await supervisor.tick()
        await announcer.follow_all({run: supervised.fence for run, supervised in supervisor.runs.items()})

    return SimulatedService(process, _consumers(process, clock, Consumer(topology.TRAINER_RUNS, handler)), step)


def _consumers(
    process: SimulatedProcess, clock: Clock, *consumers: Consumer
) -> dict[str, tuple[Consumer, DeliveryHandler]]:
    servers = process.servers

    async def available() -> bool:
        return not servers.store_away

    outage = OutageDetector(available, clock)
    return {one.subscription.name: (one, DeliveryHandler(process.bus, one, outage, servers.rng)) for one in consumers}


def _never() -> bool:
    return False


class _NoReports(ReportWriter):
    """Reports are derived, and no decision reads them."""

    async def write(self, view: RunView, doing: str) -> None:
        return


class _Archives:
    """Loads archives as the judge's loader does: a damaged one is refused."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def load(self, run: RunId, segment: SegmentId, key: str, digest: Digest) -> LoadedSegment:
        raw = await self._store.get(key, digest)
        manifest = SimpleNamespace(index=0, milestones_start=0, milestones_end=0)
        return LoadedSegment(cast(Any, raw), cast(Any, manifest), NO_PHASE)


class _Votes:
    """One judge with three equal votes."""

    async def evaluate(self, judge_input: Any, budget: Any, known: Sequence[JudgeResult] = ()) -> PoolResult:
        return PoolResult((_result(judge_input),), {})

    def with_abstentions(self, result: PoolResult) -> list[JudgeResult]:
        return list(result.results)


@lru_cache(maxsize=1_000)
def _result(archive: bytes) -> JudgeResult:
    vote = hashlib.sha256(archive).digest()[0] % 6
    score = DimensionScore(votes=[vote] * 3, value=vote / 5, unanimous=True, spread=0)
    return JudgeResult(
        judge=JudgeName("rules"),
        route="sim",
        model="sim",
        prompt=Digest("0" * 64),
        status="judged",
        dimensions={"progress": score},
    )


class _NoLedgers:
    """What judging costs decides nothing here."""

    budget = None

    async def open(self, run: RunId, epoch: int) -> "_NoLedgers":
        return self

    @contextmanager
    def pinned(self) -> Iterator[None]:
        yield

    def record(self, **rows: object) -> None:
        return


class _NoGates:
    """Every judge counts."""

    async def closed(self, run: RunId, epoch: int) -> dict[JudgeName, list[str]]:
        return {}


class _Features:
    """Reads each archive and leaves out unreadable ones, as the loader of features does."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def load(self, ratings: Sequence[Rating]) -> list[tuple[Rating, SegmentFeatures]]:
        found = []
        for rating in ratings:
            try:
                await self._store.get(rating.segment_key, rating.segment_digest)
            except Permanent:
                continue
            found.append((rating, FEATURES))
        return found


FEATURES: Final = SegmentFeatures(packed=b"", first_step=0, steps=300, milestones=0, view=VIEW)


async def _train(request: TrainingRequest, should_cancel: Callable[[], bool]) -> TrainingResult:
    """Weights that differ whenever seed, epoch, ratings or predecessor do."""
    rated = [(rating.segment, rating.segment_digest, rating.value) for rating in request.ratings]
    previous = hashlib.sha256(request.previous or b"").hexdigest()
    text = repr((request.seed, request.epoch, rated, previous))
    report = TrainingReport(
        accuracy=PairAccuracy(),
        pairs_train=0,
        pairs_heldout=0,
        baselines={},
        reliability=None,
        rank_correlation=None,
        sensitivity={},
        spread=None,
        epochs=[],
        gates={"quorum": request.quorum},
        notes=[],
    )
    return TrainingResult(
        report=report, fit="full", validation_loss={}, weights=_weights(text), state_dict=b"", seconds=0.0
    )


@lru_cache(maxsize=1_000)
def _weights(text: str) -> bytes:
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    bare = zero_weights(3, VIEW)
    return dump(replace(bare, temperature=1.0 + number / 2**32, value_bias=np.zeros_like(bare.value_bias)))
