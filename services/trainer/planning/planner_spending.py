"""What an epoch's calls have cost so far, kept in the store: a planning process that starts again begins with it.

Nothing waits for the store. What was spent within WRITE_S before the end of a process may be forgotten.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import structlog

from shared.contracts.base import Contract
from shared.contracts.driver import QuestionMode
from shared.contracts.ids import RunId
from shared.contracts.scores import Usage
from shared.errors import ContractError, ZeldaError
from shared.llm.budget import BudgetTracker, add
from shared.store import keys
from shared.store.port import NotFound, Store

WRITE_S: Final = 2.0  # between two writes; longer, and a crash forgets more of the spending

log = structlog.get_logger(__name__)


class EpochSpending(Contract):
    """The settled cost of an epoch's calls, by what was asked."""

    usage: dict[QuestionMode, Usage]


Budgets = Mapping[QuestionMode, BudgetTracker]
"""The budget that pays for the questions of a mode, under that mode's name."""


@dataclass(slots=True)
class _Epoch:
    number: int
    budgets: Budgets
    continued: bool = False  # whether the budgets hold what earlier processes spent
    changed: bool = False


class PlannerSpending:
    """The spending of one run. For one event loop, and for one process at a time."""

    def __init__(self, store: Store, run: RunId) -> None:
        self._store, self._run = store, run
        self._present = _Epoch(-1, {}, continued=True)
        self._task: asyncio.Task[None] | None = None

    def begin(self, epoch: int, budgets: Budgets) -> None:
        """Begin an epoch with new budgets. What earlier processes spent is added as soon as it was read."""
        self._present = _Epoch(epoch, budgets)
        for budget in budgets.values():
            budget.on_change = self._note
        self._keep()

    async def close(self) -> None:
        """Write once more: the last write may have been cut short."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._present.changed = any(budget.by_payer for budget in self._present.budgets.values())
        await self._settle(self._present)

    def _note(self) -> None:
        self._present.changed = True
        self._keep()

    def _keep(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_on())

    async def _write_on(self) -> None:
        while self._present.changed or not self._present.continued:
            await self._settle(self._present)
            await asyncio.sleep(WRITE_S)

    async def _settle(self, epoch: _Epoch) -> None:
        """Add what was spent before, then write what is spent. An absent store is asked again later."""
        try:
            if not epoch.continued:
                await self._continue(epoch)
            if epoch.changed:
                epoch.changed = False
                usage = {
                    mode: budget.by_payer[mode] for mode, budget in epoch.budgets.items() if mode in budget.by_payer
                }
                await self._store.put(self._key(epoch), EpochSpending(usage=usage).to_bytes())
        except ZeldaError as error:
            epoch.changed = True
            log.warning("spending not stored yet", epoch=epoch.number, error=str(error))

    async def _continue(self, epoch: _Epoch) -> None:
        try:
            before = EpochSpending.from_bytes(await self._store.get(self._key(epoch))).usage
        except NotFound:
            before = {}
        except ContractError as error:  # the budget begins empty: too many calls are better than none
            log.error("spending unreadable", key=self._key(epoch), error=str(error))
            before = {}
        for mode, used in before.items():
            spent = epoch.budgets[mode].by_payer
            spent[mode] = add(spent.get(mode, Usage()), used)
        epoch.continued = True

    def _key(self, epoch: _Epoch) -> str:
        return f"{keys.planner_answers_prefix(self._run)}epoch_{epoch.number}/spending.json"
