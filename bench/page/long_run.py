"""1,000 runs, one of 300 epochs and 60,000 segments, for `python -m bench.page`: copies of the run in tests/data.

Every document is a real one under another name. Archives keep their size; only those of the newest epochs have their
own name inside, because the page opens no older ones.
"""

import asyncio
import zipfile
from collections.abc import Awaitable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from bench.harness.measure import ROOT
from bench.harness.segments import renamed
from services.coordinator.domain.reasons import refusal_of
from shared.contracts.base import sha256
from shared.contracts.card import RewardModelCard
from shared.contracts.driver import DriverHeartbeat, DriverStopped
from shared.contracts.epoch import EpochFinishedRecord, EpochStart, SegmentRef
from shared.contracts.ids import Digest, EpisodeId, RunId, SegmentId
from shared.contracts.judging.epoch_report import EpochJudging
from shared.contracts.progress import EpochRow, RunSummary
from shared.contracts.run import RunRecord
from shared.contracts.scores import SegmentScores
from shared.state.runs import RunRecords
from shared.store import keys
from shared.store.port import Store

SOURCE: Final = ROOT / "tests/data/run_of_2026_11_22.zip"
SOURCE_RUN: Final = RunId("demo-20261123-001156")
LONG: Final = RunId("long")
NAMED_EPOCHS: Final = 3  # the newest ones, whose archives have their own names inside
PARALLEL: Final = 64
PER_EPISODE: Final = 2


class RecordedRun:
    """The documents of the recorded run."""

    def __init__(self) -> None:
        with zipfile.ZipFile(SOURCE) as archive:
            self.objects = {name: archive.read(name) for name in archive.namelist()}
        names = sorted(self.objects)
        self.archives = [self.objects[name] for name in names if name.startswith("episodes/episodes/")]
        self.scores = [
            SegmentScores.from_bytes(self.objects[name])
            for name in names
            if name.startswith("episodes/scores/") and name.endswith(".json")
        ]
        self.record = RunRecord.from_bytes(self.objects[keys.run_revision(SOURCE_RUN, 2)])
        self.start = EpochStart.from_bytes(self.objects[keys.epoch_start(SOURCE_RUN, 0)])
        self.finished = EpochFinishedRecord.from_bytes(self.objects[keys.epoch_finished(SOURCE_RUN, 0)])
        self.card = RewardModelCard.from_bytes(self.objects[keys.reward_model_card(SOURCE_RUN, 0)])
        self.judging = EpochJudging.from_bytes(self.objects[keys.judge_report(SOURCE_RUN, 0)])
        self.row = RunSummary.from_bytes(self.objects[keys.run_summary(SOURCE_RUN)]).epochs[0]


async def add_runs(store: Store, source: RecordedRun, number: int) -> None:
    """Create `number` finished runs of one epoch, without recordings."""
    records, now = RunRecords(store), datetime.now(UTC)
    made = (
        source.record.model_copy(
            update={"run": RunId(f"run-{n:04d}"), "revision": 0, "created": now - timedelta(days=2, seconds=n)}
        )
        for n in range(number)
    )
    await _in_turns(records.create(record) for record in made)


async def add_long_run(store: Store, source: RecordedRun, epochs: int, segments: int) -> None:
    """Create a stopped run with complete epochs, each with this number of judged segments."""
    now = datetime.now(UTC)
    for epoch in range(epochs):
        await _in_turns(_epoch(store, source, epoch, segments, named=epochs - epoch <= NAMED_EPOCHS))
    rows = [_row(source, epoch, segments) for epoch in range(epochs)]
    config = source.record.config.model_copy(update={"epochs": epochs + 1})
    values: dict[str, Any] = {"run": LONG, "revision": 0, "state": "stopped", "config": config, "epoch": epochs}
    record = source.record.model_copy(update={**values, "created": now, "updated": now - timedelta(days=1)})
    summary = RunSummary.from_bytes(source.objects[keys.run_summary(SOURCE_RUN)])
    about = {"run": LONG, "state": "stopped", "config": config, "created": now, "epochs": rows}
    await store.put(keys.run_summary(LONG), summary.model_copy(update=about).to_bytes())
    start = source.start.model_copy(update={"run": LONG, "epoch": epochs, "config": config})
    await store.put(keys.epoch_start(LONG, epochs), start.to_bytes())
    stopped = DriverStopped(run=LONG, epoch=epochs, attempt=record.attempt, steps=0, time=now)
    await store.put(keys.driver_stopped(LONG, record.attempt), stopped.to_bytes())
    await RunRecords(store).create(record)


async def beat(store: Store, epoch: int, interval_s: float = 5.0) -> None:
    """Write the heartbeats of a driver that plays this epoch; never returns."""
    steps = 0
    while True:
        steps += 1_000
        now = datetime.now(UTC)
        one = DriverHeartbeat(run=LONG, epoch=epoch, attempt=2, steps=steps, steps_per_s=200.0, time=now)
        await store.put(keys.driver_heartbeat(LONG), one.to_bytes())
        await asyncio.sleep(interval_s)


def _row(source: RecordedRun, epoch: int, segments: int) -> EpochRow:
    """The row of an epoch as this version writes it. Each epoch but the first was shaped."""
    about: dict[str, Any] = {"epoch": epoch, "segments_recorded": segments, "segments_judged": segments}
    if epoch:
        about |= {"reward_model": source.card.weights_digest, "reward_model_epoch": epoch - 1}
    else:
        about |= {"not_shaped": "not shaped: no reward model existed before epoch 0"}
    if not source.row.reward_model_passed:
        about |= {"reason": refusal_of(source.card)}
    return source.row.model_copy(update={**about, "judging": _judging(source, epoch)})


def _judging(source: RecordedRun, epoch: int) -> EpochJudging:
    return source.judging.model_copy(update={"run": LONG, "epoch": epoch})


def _epoch(store: Store, source: RecordedRun, epoch: int, segments: int, named: bool) -> Iterator[Awaitable[Any]]:
    """The writes of one complete epoch."""
    references = []
    for number in range(segments):
        episode = EpisodeId(f"e{epoch:04d}-r00-v00-{number // PER_EPISODE:04d}")
        segment = SegmentId(f"{episode}-s{number % PER_EPISODE:03d}")
        raw = source.archives[number % len(source.archives)]
        raw = renamed(raw, segment, run=LONG, epoch=epoch, episode=episode) if named else raw
        key, digest = keys.segment(LONG, epoch, episode, segment), Digest(sha256(raw))
        references.append(SegmentRef(segment=segment, episode=episode, key=key, digest=digest))
        place = {"run": LONG, "epoch": epoch, "episode": episode, "segment": segment}
        score = source.scores[number % len(source.scores)]
        score = score.model_copy(update={**place, "segment_key": key, "segment_digest": digest})
        yield store.put(key, raw)
        yield store.put(keys.digest_note(key, digest), b"")
        yield store.put(keys.score(LONG, epoch, segment), score.to_bytes())
    about = {"run": LONG, "epoch": epoch}
    yield store.put(keys.epoch_start(LONG, epoch), source.start.model_copy(update=about).to_bytes())
    shaped_by = source.card.weights_digest if epoch else None
    finished = source.finished.model_copy(update={**about, "segments": references, "reward_model": shaped_by})
    yield store.put(keys.epoch_finished(LONG, epoch), finished.to_bytes())
    card = source.card.model_copy(update={**about, "segments": segments})
    yield store.put(keys.reward_model_card(LONG, epoch), card.to_bytes())
    yield store.put(card.weights_key.replace(SOURCE_RUN, LONG).replace("epoch_0", f"epoch_{epoch}"), b"weights")
    yield store.put(f"{keys.checkpoint_prefix(LONG, epoch)}checkpoint_0123456789abcdef.zip", b"checkpoint")
    yield store.put(keys.judge_report(LONG, epoch), _judging(source, epoch).to_bytes())
    row = _row(source, epoch, segments)
    yield store.put(keys.evaluation_summary(LONG, epoch), row.to_bytes())


async def _in_turns(work: Iterable[Awaitable[Any]]) -> None:
    """Await all, at most PARALLEL at a time."""
    waiting = iter(work)

    async def take() -> None:
        for one in waiting:
            await one

    await asyncio.gather(*(take() for _ in range(PARALLEL)))
