"""A simulated training driver: it records archives, heartbeats and checkpoints, and commits the epoch or its stop.

What it records depends on run, epoch and reward model alone, as the play of a real driver does.
"""

import asyncio
from datetime import datetime
from typing import Final

from services.trainer.documents import CheckpointPointer, DriverName, Heartbeat, checkpoint_key, latest_checkpoint_key
from services.trainer.domain.episodes import EpisodeName
from services.trainer.supervisor.backends.port import DriverLaunch, DriverStatus
from shared.contracts.base import sha256
from shared.contracts.driver import DriverStopped
from shared.contracts.epoch import EpochFinishedRecord, EpochStart, SegmentRef
from shared.contracts.ids import Digest, SegmentId
from shared.errors import Transient
from shared.state.epochs import first_unfinished_epoch
from shared.state.runs import RunRecords
from shared.store import keys
from shared.store.create import create_if_absent
from shared.store.port import NotFound
from tests.faults.simulation.clock import Clock
from tests.faults.simulation.commit_checks import RUN
from tests.faults.simulation.ports import SimulatedProcess

SEGMENTS: Final = 2  # of an epoch
POLL_S: Final = 30.0
RETRY_S: Final = 5.0


class SimulatedDriver:
    """One driver process of the run."""

    def __init__(self, process: SimulatedProcess, clock: Clock) -> None:
        self._process, self._store, self._clock = process, process.store, clock
        self._records = RunRecords(self._store, clock)

    async def run(self) -> None:
        """Play ordered epochs until the run is not active any more."""
        while True:
            try:
                if not await self._next():
                    return
            except Transient:
                await asyncio.sleep(RETRY_S)
            except NotFound:  # the run was deleted
                return

    async def _next(self) -> bool:
        """Play the next epoch, or wait for its order; return False when the run needs no driver."""
        record = await self._records.latest(RUN)
        names = {entry.key for entry in await self._store.list(keys.epochs_prefix(RUN))}
        epoch = first_unfinished_epoch(RUN, names)
        if record.state == "stopping":
            await self._stop(record.attempt, epoch)
        if record.state not in ("created", "running"):
            return False
        key = keys.epoch_start(RUN, epoch)
        if key in names:
            await self._play(EpochStart.from_bytes(await self._store.get(key)))
        else:
            await self._beat(epoch, 0)
            await asyncio.sleep(POLL_S)
        return True

    async def _play(self, order: EpochStart) -> None:
        """Record the epoch's segments; stop between two of them when the record says so."""
        model = order.reward_model
        if model is not None:
            await self._store.get(model.weights_key, model.weights_digest)
        listed = []
        for number in range(SEGMENTS):
            if (await self._records.latest(RUN)).state != "running":
                return
            listed.append(await self._record(order, number))
            await self._save(order.epoch, number)
            await self._beat(order.epoch, number + 1)
        finished = EpochFinishedRecord(
            run=RUN,
            epoch=order.epoch,
            fence=order.fence,
            steps=600,
            episodes=1,
            seconds=1.0,
            segments=listed,
            checkpoint_key=latest_checkpoint_key(RUN, order.epoch),
            checkpoint_digest=Digest(sha256(b"checkpoint")),
            reward_model=model.weights_digest if model is not None else None,
            created=self._now(),
        )
        await create_if_absent(self._store, keys.epoch_finished(RUN, order.epoch), finished.to_bytes())

    async def _record(self, order: EpochStart, number: int) -> SegmentRef:
        """Write an archive, then the note with its digest: a death between the two leaves no note."""
        episode = EpisodeName(order.epoch, 0, 0, number).id
        segment = SegmentId(f"{episode}-s000")
        key = keys.segment(RUN, order.epoch, episode, segment)
        model = order.reward_model.weights_digest if order.reward_model is not None else "-"
        data = f"{order.config.seed} {order.epoch} {number} {model}".encode()
        digest = Digest(sha256(data))
        await create_if_absent(self._store, key, data)
        await self._store.put(keys.digest_note(key, digest), b"")
        return SegmentRef(segment=segment, episode=episode, key=key, digest=digest)

    async def _save(self, epoch: int, iteration: int) -> None:
        digest = Digest(sha256(b"checkpoint"))
        key = checkpoint_key(RUN, epoch, "d", iteration, digest)
        await self._store.put(key, b"checkpoint")
        pointer = CheckpointPointer(
            run=RUN, epoch=epoch, key=key, digest=digest, iteration=iteration, steps=300 * iteration
        )
        await self._store.put(latest_checkpoint_key(RUN, epoch), pointer.to_bytes())

    async def _stop(self, attempt: int, epoch: int) -> None:
        stopped = DriverStopped(run=RUN, epoch=epoch, attempt=attempt, steps=0, time=self._now())
        await create_if_absent(self._store, keys.driver_stopped(RUN, attempt), stopped.to_bytes())

    async def _beat(self, epoch: int, iteration: int) -> None:
        beat = Heartbeat(
            run=RUN,
            epoch=epoch,
            steps=300 * iteration,
            state="training",
            time=self._now(),
            driver=DriverName(self._process.name),
            host="sim",
            pid=1,
        )
        await self._store.put(keys.driver_heartbeat(RUN), beat.to_bytes())

    def _now(self) -> datetime:
        return self._clock.now()


class SimulatedBackend:
    """Starts drivers as processes of their own, as Ray does: they outlive the trainer that started them."""

    def __init__(self, process: SimulatedProcess, drivers: dict[str, SimulatedProcess], clock: Clock) -> None:
        self._process, self._drivers, self._clock = process, drivers, clock

    async def start(self, launch: DriverLaunch) -> None:
        """See the port."""
        await self._process.pause()
        if launch.name not in self._drivers:
            driver = SimulatedProcess(launch.name, self._process.servers)
            self._drivers[launch.name] = driver
            driver.start(SimulatedDriver(driver, self._clock).run())
        await self._process.pause()

    async def status(self, name: str) -> DriverStatus:
        """See the port."""
        await self._process.pause()
        driver = self._drivers.get(name)
        if driver is None:
            return DriverStatus("ended")
        if not driver.alive:
            return DriverStatus("failed", "killed")
        return DriverStatus("running" if driver.busy else "ended")

    async def close(self) -> None:
        """The drivers go on."""
