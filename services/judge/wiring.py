"""Builds the judge service from its settings and the runtime's ports."""

import dataclasses
from contextlib import suppress

from services.judge import telemetry
from services.judge.config import load_service_judges
from services.judge.runtime import JudgeRuntime
from services.judge.settings import JudgeSettings
from shared.bus import topology
from shared.bus.consumer import Consumer
from shared.config.yaml_document import ConfigError
from shared.errors import Fatal
from shared.llm.port import RouteUnavailable
from shared.runtime.service import Service, ServicePorts
from shared.state.deleted_runs import ignore_deleted_runs


async def wire(settings: JudgeSettings, ports: ServicePorts) -> Service:
    """Return the service: consumers of segments and epochs, flush loop, route probe, removal of ended runs' metrics."""
    try:
        file = load_service_judges(settings.judges_file, settings.judge.default_url)
        runtime = JudgeRuntime(ports.store, file, settings.judge, stopping=ports.stopping.is_set)
    except ConfigError as error:
        raise Fatal(str(error)) from error
    with suppress(RouteUnavailable):  # the background probe retries an unreachable route
        await runtime.probe_routes(retry=False)
    subscription = dataclasses.replace(topology.JUDGE_SEGMENTS, slots=settings.judge.slots)
    judge = ignore_deleted_runs(ports.store, runtime.handlers.segment_ready)
    consumer = Consumer(subscription, judge, on_dead=runtime.handlers.segment_dead, room=runtime.segments_at_once)
    compare = ignore_deleted_runs(ports.store, runtime.pairs.epoch_finished)
    epochs = Consumer(topology.JUDGE_EPOCHS, compare, on_dead=runtime.pairs.epoch_dead)
    background = [
        runtime.ledgers.run_flush_loop,
        runtime.probe_routes,
        lambda: telemetry.OF_RUNS.watch(ports.store),
    ]
    return Service(consumers=[consumer, epochs], background=background, drain=runtime.close)
