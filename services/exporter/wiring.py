"""Assembles the exporter from its settings and ports."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from services.exporter.adapters.scores import ScoreLookup
from services.exporter.games import GAMES
from services.exporter.handlers import Handlers
from services.exporter.render import RenderOptions
from services.exporter.segment_exporter import OpenGame, SegmentExporter
from services.exporter.settings import ExporterSettings, ExportGroup
from shared.bus import topology
from shared.bus.consumer import Consumer
from shared.contracts.run import RunConfig
from shared.game.games.game import Game
from shared.game.games.registry import GameRequest
from shared.runtime.service import Service, ServicePorts
from shared.state.deleted_runs import ignore_deleted_runs


async def wire(settings: ExporterSettings, ports: ServicePorts) -> Service:
    """Return the service: one consumer with as many parallel replays as the settings allow."""
    group, scores = settings.export, ScoreLookup(ports.store)
    exporter = SegmentExporter(ports.store, scores, game_opener(settings.rom.file), render_options(group))
    handlers = Handlers(ports.store, scores, exporter, group.policy, group.top_k)
    subscription = replace(topology.EXPORTER_SEGMENTS, slots=group.slots)
    return Service(consumers=[Consumer(subscription, ignore_deleted_runs(ports.store, handlers.handle))])


def render_options(group: ExportGroup) -> RenderOptions:
    """The rendering options that the settings name."""
    return RenderOptions(frames=group.frames, video=group.video, scale=group.scale, overlay=group.overlay)


def game_opener(rom: Path | None) -> OpenGame:
    """Return a function that opens and caches the game of a run; `rom` is the user's image for games that need one."""

    open_cached = lru_cache(maxsize=8)(GAMES.open)

    def open_game(config: RunConfig) -> Game:
        return open_cached(config.game, GameRequest(config.world, config.difficulty, config.seed, rom=rom))

    return open_game
