"""A run for trainer tests: its record, orders, segments and finished epochs in a store, and a fake backend."""

from datetime import UTC, datetime
from typing import Any

from services.trainer.documents import CheckpointPointer, DriverName, Heartbeat
from services.trainer.supervisor.backends.port import DriverLaunch, DriverStatus
from shared.contracts.base import sha256
from shared.contracts.epoch import EpochFinishedRecord, EpochStart, SegmentRef
from shared.contracts.ids import Digest, EpisodeId, RunId, SegmentId
from shared.contracts.run import RunConfig, RunRecord
from shared.state.runs import RunRecords
from shared.store import keys
from shared.store.port import Store

RUN = RunId("demo")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONFIG = RunConfig(world="garden", epoch_steps=2048, batch_size=1024, env_runners=0, envs_per_runner=8)


async def run_in(store: Store, state: Any = "running", config: RunConfig = CONFIG) -> RunRecord:
    record = RunRecord(run=RUN, revision=0, state=state, config=config, created=NOW, updated=NOW)
    await RunRecords(store).create(record)
    return record


async def enter(store: Store, record: RunRecord, state: Any) -> RunRecord:
    following = record.model_copy(update={"revision": record.revision + 1, "state": state})
    await RunRecords(store).append(following)
    return following


async def order(store: Store, epoch: int = 0, fence: int = 1, config: RunConfig = CONFIG) -> EpochStart:
    start = EpochStart(run=RUN, epoch=epoch, fence=fence, config=config, created=NOW)
    await store.create(keys.epoch_start(RUN, epoch), start.to_bytes())
    return start


async def segment(store: Store, number: int, epoch: int = 0, noted: bool = True) -> SegmentRef:
    """Store a segment as its writer does; without a digest note if not `noted`, as early writers did."""
    episode, name = EpisodeId(f"e{epoch:04d}-r00-v00-{number:04d}"), f"e{epoch:04d}-r00-v00-{number:04d}-s000"
    key = keys.segment(RUN, epoch, episode, SegmentId(name))
    data = f"segment {number}".encode()
    digest = await store.create(key, data)
    if noted:
        await store.create(keys.digest_note(key, digest), b"")
    return SegmentRef(segment=SegmentId(name), episode=episode, key=key, digest=Digest(sha256(data)))


async def account(
    store: Store, segments: list[SegmentRef], epoch: int = 0, checkpoint: CheckpointPointer | None = None
) -> None:
    record = EpochFinishedRecord(
        run=RUN,
        epoch=epoch,
        fence=1,
        steps=2048,
        episodes=3,
        seconds=1.0,
        segments=segments,
        checkpoint_key=checkpoint.key if checkpoint else "models/x",
        checkpoint_digest=checkpoint.digest if checkpoint else Digest("0" * 64),
        created=NOW,
    )
    await store.create(keys.epoch_finished(RUN, epoch), record.to_bytes())


def beat(driver: str, **fields: Any) -> Heartbeat:
    values: dict[str, Any] = {"run": RUN, "epoch": 0, "time": NOW, "host": "here", "pid": 1, "state": "training"}
    return Heartbeat(driver=DriverName(driver), **{**values, **fields})


class FakeBackend:
    """Records every launch; `statuses` holds the state of each driver: `running` from its first launch."""

    def __init__(self) -> None:
        self.launches: list[DriverLaunch] = []
        self.statuses: dict[str, DriverStatus] = {}

    async def start(self, launch: DriverLaunch) -> None:
        self.launches.append(launch)
        self.statuses.setdefault(launch.name, DriverStatus("running"))

    async def status(self, name: str) -> DriverStatus:
        return self.statuses.get(name, DriverStatus("ended"))

    async def close(self) -> None:
        self.launches.clear()
