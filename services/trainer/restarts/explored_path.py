"""The path that an exploration found, played in an environment of the run: it becomes the first pack of its archive.

The environment cuts the path into cells of the run's own size. Each part of the path continues the part before.
"""

from collections import Counter
from collections.abc import Sequence

from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.restarts.collector import CellCollector, CollectedState, PathStart
from services.trainer.restarts.pack import ArchivePack
from services.trainer.state_archive.archive import PathPart
from services.trainer.state_archive.cell import ArchiveCell
from shared.errors import Fatal
from shared.game.emulator.start import StartState, true_start
from shared.game.observation.episode_memory import EpisodeMemory


def pack_of_path(config: EnvConfig, path: Sequence[PathPart], tiles_per_cell: int) -> ArchivePack:
    """The states of a path from the true start, in cells of so many tiles. `config` is that of the environments.

    Raises Fatal if a part does not end in a state that deserves an entry: then it was not explored in this game.
    """
    session = GameSession(config)
    try:
        return _pack(session, path, tiles_per_cell)
    finally:
        session.close()


def _pack(session: GameSession, path: Sequence[PathPart], tiles_per_cell: int) -> ArchivePack:
    starts: dict[str, PathStart] = {}
    collector = CellCollector(1, {}, starts, tiles_per_cell=tiles_per_cell)
    start, begin = true_start(session.game), PathStart()
    states: list[CollectedState] = []
    visits: Counter[ArchiveCell] = Counter()
    for number, part in enumerate(path):
        starts[start.name] = begin
        session.begin(start, part.seed)
        collector.look(0, session)
        for action in part.actions:
            session.step(action)
            collector.look(0, session)
        found, seen = collector.drain()
        visits.update(seen)
        states += found
        if not found or found[-1].actions != part.actions:
            raise Fatal(f"part {number} of the explored path does not end in a new or better cell of the run's archive")
        memory = EpisodeMemory.of(session.trace, session.counters).to_bytes()
        start = StartState(f"explored-{number}", session.emulator.save(), memory)
        begin = PathStart(len(states) - 1, begin.steps + len(part.actions))
    return ArchivePack(None, 0, tuple(states), visits)
