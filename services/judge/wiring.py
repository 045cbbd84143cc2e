"""Puts the judge service together: the one place where real adapters are chosen."""

import asyncio
import dataclasses
from contextlib import suppress

import structlog

from services.judge.adapters.route import Route
from services.judge.adapters.rules import RulesModel
from services.judge.books import Books
from services.judge.checks import Checks
from services.judge.clips import Clips
from services.judge.config import ConfigError, JudgesFile, judges_of_service, load_phases
from services.judge.domain.budget import Budget
from services.judge.handlers import Handlers
from services.judge.juror import Juror
from services.judge.panel import Panel
from services.judge.ports import RouteUnavailable
from services.judge.settings import JudgeGroup, JudgeSettings
from shared.bus import topology
from shared.bus.consumer import Consumer
from shared.errors import Fatal
from shared.runtime.service import Ports, Service
from shared.store.port import Store

PROBE_S = 30.0  # how often a route that has not told its models is asked again
log = structlog.get_logger(__name__)


class Court:
    """Everything that judges: routes, panel, books, handlers. Also used by `zelda judge` without any bus."""

    def __init__(self, store: Store, file: JudgesFile, group: JudgeGroup, *, checks: bool = True) -> None:
        self.file = file
        self.routes = {
            name: Route(name, spec, use_direct=group.use_direct)
            for name, spec in file.routes.items()
            if any(judge.route == name for judge in file.judges)
        }
        self._strangers = set(self.routes)  # routes that have not told their models
        jurors = [
            Juror(spec, RulesModel() if spec.route is None else self.routes[spec.route], group.cache_size)
            for spec in file.judges
        ]
        self.panel = Panel(jurors)
        phases = load_phases(group.phases_file)
        self.clips = Clips(store, phases, frames=any(judge.frames for judge in file.judges))
        budget = Budget(calls=group.budget_calls, tokens=group.budget_tokens, money=group.budget_money)
        self.books = Books(store, group.replica, file.rubric, budget.share(group.replicas))
        self.checks = (
            Checks(store, self.panel, self.clips, file.rubric, group.canary_segments, group.audit_share)
            if checks
            else None
        )
        self.handlers = Handlers(
            store,
            self.panel,
            self.clips,
            self.books,
            self.checks,
            rubric=file.rubric,
            weights=file.weights,
            min_weight=group.min_weight,
            patience_s=group.patience_s,
        )

    async def introduce(self, *, patient: bool = True) -> None:
        """Ask each route that has not told its models: wrong names are told at once, and contexts bound the prompts.

        A route that is away is asked again until it answers; if not `patient`, it raises RouteUnavailable in the end.
        """
        asked = [self._introduced(name, patient) for name in sorted(self._strangers)]
        for outcome in await asyncio.gather(*asked, return_exceptions=True):
            if outcome is not None:
                raise outcome

    async def _introduced(self, name: str, patient: bool) -> None:
        while True:
            try:
                served = await self.routes[name].models()
                break
            except RouteUnavailable as error:
                if not patient:
                    raise
                log.warning("route not reached", route=name, error=str(error), retry_s=PROBE_S)
                await asyncio.sleep(PROBE_S)
        for juror in self.panel.jurors:
            if juror.spec.route != name:
                continue
            if served and juror.spec.model not in served:
                log.error("model not served", route=name, model=juror.spec.model, served=sorted(served)[:20])
            juror.context = served.get(juror.spec.model)
        self._strangers.discard(name)

    async def close(self) -> None:
        """Finish checks, write the books, close connections."""
        await self.books.write()  # first what there is: checks may take longer than a service that ends has time
        if self.checks is not None:
            await self.checks.drain()
            await self.books.write()
        for route in self.routes.values():
            await route.close()


async def wire(settings: JudgeSettings, ports: Ports) -> Service:
    """The service as the runtime runs it."""
    try:
        file = judges_of_service(settings.judges_file, settings.judge.default_url)
        court = Court(ports.store, file, settings.judge)
    except ConfigError as error:
        raise Fatal(str(error)) from error
    with suppress(RouteUnavailable):  # whoever is away now is asked again in the background
        await court.introduce(patient=False)
    subscription = dataclasses.replace(topology.JUDGE_SEGMENTS, slots=settings.judge.slots)
    consumer = Consumer(subscription, court.handlers.segment_ready, on_dead=court.handlers.segment_dead)
    return Service(consumers=[consumer], background=[court.books.keep, court.introduce], drain=court.close)
