"""Assembles everything that judges: the one place where adapters are chosen. It needs a store, but no bus."""

import asyncio
from collections.abc import Callable

import structlog

from services.judge import telemetry
from services.judge.adapters.rules_model import RulesModel
from services.judge.config import JudgesFile, load_phases, rules_only
from services.judge.domain.judge_gates import JudgeThresholds
from services.judge.pairs.pair_handler import PairHandler
from services.judge.service.gate_keeper import GateKeeper
from services.judge.service.handlers import Handlers
from services.judge.service.judge import Judge
from services.judge.service.ledger_store import LedgerStore
from services.judge.service.loader import SegmentLoader
from services.judge.service.monitor import JudgeMonitor, judge_of_pairs
from services.judge.service.pool import JudgePool
from services.judge.service.reply_archive import ReplyArchive
from services.judge.settings import JudgeGroup
from shared.llm.budget import Budget
from shared.llm.port import RouteUnavailable
from shared.llm.route import RouteClient
from shared.store import keys
from shared.store.port import Store

QUEUE_S = 60.0  # longest expected time in the queue of a route; with more, a stopping service gives back more work
MAX_SEGMENTS = 1_000  # without a route the setting `slots` decides
PROBE_RETRY_S = 30.0  # pause before an unreachable route is probed again
log = structlog.get_logger(__name__)


class JudgeRuntime:
    """Routes, judges, ledgers and handlers of one process. The service and `zelda judge` both use it."""

    def __init__(
        self,
        store: Store,
        file: JudgesFile,
        group: JudgeGroup,
        *,
        monitoring: bool = True,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """`stopping` reports a shutdown: what waits then gives up."""
        self.file = file
        self.routes = {
            name: RouteClient(name, spec, telemetry.ROUTES, use_direct=group.use_direct)
            for name, spec in file.routes.items()
            if any(judge.route == name for judge in file.judges)
        }
        self._unprobed_routes = set(self.routes)
        archive = ReplyArchive(store) if group.keep_replies else None
        judges = [
            Judge(spec, RulesModel() if spec.route is None else self.routes[spec.route], group.cache_size, archive)
            for spec in file.judges
        ]
        self.pool = JudgePool(judges)
        phases = load_phases(group.phases_file)
        self.loader = SegmentLoader(store, phases, frames=any(judge.frames for judge in file.judges))
        budget = Budget(calls=group.budget_calls, tokens=group.budget_tokens, money=group.budget_money)
        self.ledgers = LedgerStore(store, group.replica, file.rubric, budget.share(group.replicas))
        self.monitor = (
            JudgeMonitor(store, self.pool, self.loader, file.rubric, group.canary_segments, group.audit_share)
            if monitoring
            else None
        )
        pair_judge = judge_of_pairs(self.pool)
        gates = GateKeeper(store, file.rubric, JudgeThresholds(**group.gates.model_dump()), _name(pair_judge))
        self.pairs = PairHandler(store, pair_judge, self.loader, self.ledgers, gates, file.rubric, stopping)
        self.handlers = Handlers(
            store,
            self.pool,
            self.loader,
            self.ledgers,
            self.monitor,
            gates,
            rubric=file.rubric,
            weights=file.weights,
            min_weight=group.min_weight,
            patience_s=group.patience_s,
        )

    def segments_at_once(self) -> int:
        """Maximum number of concurrent segments: more would only queue at the slowest route."""
        return min((route.calls_within(QUEUE_S) for route in self.routes.values()), default=MAX_SEGMENTS)

    async def probe_routes(self, *, retry: bool = True) -> None:
        """Query the models of each unprobed route: unknown model names are logged, contexts bound the prompts.

        With `retry`, an unreachable route is probed until it answers; without, RouteUnavailable is raised at the end.
        """
        probes = [self._probe_route(name, retry) for name in sorted(self._unprobed_routes)]
        for error in await asyncio.gather(*probes, return_exceptions=True):
            if error is not None:
                raise error

    async def _probe_route(self, name: str, retry: bool) -> None:
        while True:
            try:
                served = await self.routes[name].list_models()
                break
            except RouteUnavailable as error:
                if not retry:
                    raise
                log.warning("route probe failed", route=name, error=str(error), retry_s=PROBE_RETRY_S)
                await asyncio.sleep(PROBE_RETRY_S)
        for judge in self.pool.judges:
            if judge.spec.route != name:
                continue
            if served and judge.spec.model not in served:
                log.error("model not served", route=name, model=judge.spec.model, served=sorted(served)[:20])
            judge.context = served.get(judge.spec.model)
        self._unprobed_routes.discard(name)

    async def close(self) -> None:
        """Flush the ledgers, finish the monitor's checks, close the connections."""
        await self.ledgers.flush()  # first: the checks may outlast the time that a stopping service has
        if self.monitor is not None:
            await self.monitor.drain()
            await self.ledgers.flush()
        for route in self.routes.values():
            await route.close()


def rules_runtime(store: Store, rubric: str = keys.RUBRIC) -> JudgeRuntime:
    """Return the rules judge in this process, without a server and unmonitored, for tools and studies."""
    return JudgeRuntime(store, rules_only().with_rubric(rubric), JudgeGroup(), monitoring=False)


def _name(judge: Judge | None) -> str | None:
    return None if judge is None else str(judge.spec.name)
