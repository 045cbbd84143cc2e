"""The path that an exploration found, played in an environment of the run: it becomes the first pack of its archive.

The environment cuts the path into cells of the run's own size.
"""

from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.restarts.collector import CellCollector
from services.trainer.restarts.pack import ArchivePack
from services.trainer.state_archive.archive import PathPart
from shared.game.emulator.start import true_start


def pack_of_path(config: EnvConfig, path: PathPart, tiles_per_cell: int) -> ArchivePack:
    """The states of a path from the true start, in cells of so many tiles. `config` is that of the environments."""
    session = GameSession(config)
    try:
        collector = CellCollector(1, {}, {}, tiles_per_cell=tiles_per_cell)
        session.begin(true_start(session.game), path.seed)
        collector.look(0, session)
        for action in path.actions:
            session.step(action)
            collector.look(0, session)
    finally:
        session.close()
    states, visits = collector.drain()
    return ArchivePack(None, 0, tuple(states), visits)
