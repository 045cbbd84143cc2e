"""Puts the exporter together from settings and ports."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from services.exporter.adapters.scores import Scores
from services.exporter.export import Exporter, OpenGame
from services.exporter.handlers import Handlers
from services.exporter.render import Look
from services.exporter.settings import ExporterSettings
from shared.bus import topology
from shared.bus.consumer import Consumer
from shared.contracts.run import RunConfig
from shared.game.roms import Game, open_game
from shared.runtime.service import Ports, Service


async def wire(settings: ExporterSettings, ports: Ports) -> Service:
    """The service: one consumer, with as many replays at once as the settings allow."""
    export = settings.export
    look = Look(frames=export.frames, video=export.video, scale=export.scale, overlay=export.overlay)
    scores = Scores(ports.store)
    exporter = Exporter(ports.store, scores, games(settings.rom.file), look)
    handlers = Handlers(ports.store, scores, exporter, export.policy, export.top_k)
    subscription = replace(topology.EXPORTER_SEGMENTS, slots=export.slots)
    return Service(consumers=[Consumer(subscription, handlers.handle)])


def games(rom: Path | None) -> OpenGame:
    """How this process opens the game of a run; `rom` is the user's own image for games that need one."""

    @lru_cache(maxsize=8)
    def of(config: RunConfig) -> Game:
        return open_game(config.game, world=config.world, difficulty=config.difficulty, seed=config.seed, rom=rom)

    return of
