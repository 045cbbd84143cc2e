"""Which judges count in an epoch: decided once, from the report of the judged epoch before, for all judge processes.

The judges are asked in any case, so that a judge whose figures recover counts again an epoch later.
"""

import structlog
from pydantic import Field

from services.judge.domain.judge_gates import JudgeThresholds, closed_gates
from shared.contracts.base import Contract
from shared.contracts.epoch import EpochStart
from shared.contracts.events import Epoch
from shared.contracts.ids import JudgeName, RunId
from shared.contracts.judging.epoch_report import EpochJudging
from shared.errors import ContractError
from shared.process.bounded_cache import BoundedCache
from shared.store import keys
from shared.store.create import create_if_absent
from shared.store.port import NotFound, Store

CACHED_EPOCHS = 64
log = structlog.get_logger(__name__)


class JudgeGates(Contract):
    """The judges that do not count in an epoch, each with its reasons."""

    run: RunId
    epoch: Epoch
    closed: dict[JudgeName, list[str]] = Field(max_length=16)


class GateKeeper:
    """The gates of one rubric version. `pair_judge` is the judge that compares pairs."""

    def __init__(self, store: Store, rubric: str, thresholds: JudgeThresholds, pair_judge: str | None) -> None:
        self._store, self._rubric, self._thresholds, self._pair_judge = store, rubric, thresholds, pair_judge
        self._known: BoundedCache[tuple[RunId, int], dict[JudgeName, list[str]]] = BoundedCache(CACHED_EPOCHS)

    async def closed(self, run: RunId, epoch: int) -> dict[JudgeName, list[str]]:
        """Return the judges that do not count in this epoch, each with the reasons; none in epoch 0."""
        if self._thresholds.open or epoch == 0:
            return {}
        known = self._known.get((run, epoch))
        if known is None:
            known = await self._stored(run, epoch)
            if known is None:
                known = await self._decide(run, epoch)
            self._known.put((run, epoch), known)
        return known

    async def _decide(self, run: RunId, epoch: int) -> dict[JudgeName, list[str]]:
        """Decide, unless another process was faster: its decision is read."""
        report = await self._report(run, epoch - await self._interval(run, epoch))
        found = {} if report is None else closed_gates(report, self._thresholds, self._pair_judge)
        gates = JudgeGates(run=run, epoch=epoch, closed={JudgeName(name): why for name, why in found.items()})
        if await create_if_absent(self._store, self._key(run, epoch), gates.to_bytes()):
            for name, why in gates.closed.items():
                log.warning("judge gated", run=run, epoch=epoch, judge=name, reasons=why)
            return gates.closed
        return await self._stored(run, epoch) or {}

    async def _interval(self, run: RunId, epoch: int) -> int:
        """The epochs from one judged epoch to the next, by the order of this one.

        1 for play without an order, and for a damaged one: that is no reason to refuse the epoch's segments.
        """
        try:
            return EpochStart.from_bytes(await self._store.get(keys.epoch_start(run, epoch))).config.judge_interval
        except NotFound:
            return 1
        except ContractError as error:
            log.error("epoch order not readable", run=run, epoch=epoch, error=str(error))
            return 1

    async def _stored(self, run: RunId, epoch: int) -> dict[JudgeName, list[str]] | None:
        """The stored decision; None before it is made. A damaged one is removed, so that it is made again.

        Raised as an error, it would make a dead letter of each segment of the epoch. The same report gives the same
        decision.
        """
        key = self._key(run, epoch)
        try:
            return JudgeGates.from_bytes(await self._store.get(key)).closed
        except NotFound:
            return None
        except ContractError as error:
            log.error("judge gates not readable: decided again", run=run, epoch=epoch, key=key, error=str(error))
            await self._store.delete(key)
            return None

    async def _report(self, run: RunId, epoch: int) -> EpochJudging | None:
        try:
            return EpochJudging.from_bytes(await self._store.get(keys.judge_report(run, epoch, self._rubric)))
        except NotFound:
            return None
        except ContractError as error:
            log.error("judge report not readable", run=run, epoch=epoch, error=str(error))
            return None

    def _key(self, run: RunId, epoch: int) -> str:
        return keys.judge_gates(run, epoch, self._rubric)
