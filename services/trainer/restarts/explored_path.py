"""The path that an exploration found, as data, and played in an environment of the run.

Played, it becomes the first pack of the run's archive: the environment cuts it into cells of the run's own size.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from pydantic import Base64UrlBytes, Field

from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.restarts.collector import CellCollector
from services.trainer.restarts.pack import ArchivePack
from services.trainer.state_archive.archive import PathPart
from services.trainer.state_archive.goal import achieved_in
from shared.contracts.base import Contract
from shared.errors import ContractError
from shared.game.emulator.start import true_start


class ExploredPath(Contract):
    """What an exploration found, without its archive: seed and settings decide it, so it need not be found again."""

    exploration: dict[str, Any] = Field(description="what decided the exploration: plan, steps, and digest of the ROM")
    steps: int = Field(ge=0, description="steps of the exploration")
    seconds: float = Field(ge=0, description="wall time, with that of the shortening")
    cells: int = Field(ge=0, description="cells of the exploration's own archive")
    achieved: int = Field(ge=0, description="sum of the lasting counters that the path reaches")
    seed: int = Field(ge=0, description="of the game's random generator at the true start")
    actions: Base64UrlBytes = Field(max_length=1 << 26, description="one byte for each action")

    @property
    def path(self) -> PathPart:
        """The path from the true start."""
        return PathPart(self.seed, self.actions)


class ExploredPaths(Protocol):
    """Where explored paths are kept for other runs."""

    def find(self, exploration: Mapping[str, Any]) -> ExploredPath | None:
        """The path that this exploration found; None if it is not known. ContractError if it is damaged."""
        ...

    def keep(self, found: ExploredPath) -> None:
        """Keep a path."""
        ...


class NoPaths:
    """Keeps nothing: each run explores."""

    def find(self, exploration: Mapping[str, Any]) -> ExploredPath | None:
        """None."""
        return None

    def keep(self, found: ExploredPath) -> None:
        """Keep nothing."""


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


def check_path(found: ExploredPath, pack: ArchivePack) -> None:
    """Raise ContractError unless the path achieves here, in this pack, what it achieved when it was found."""
    here = max((achieved_in(state.cell.counters) for state in pack.states), default=0)
    if here < found.achieved:
        raise ContractError(
            f"the explored path of {len(found.actions)} steps achieved {found.achieved} when it was found, and {here} "
            "now: it is damaged, or the game plays otherwise; remove its file, and the run explores again"
        )
