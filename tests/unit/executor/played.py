"""A running game for tests of the executor: put the hero anywhere, carry out macros, count what happens."""

from collections.abc import Iterator
from contextlib import contextmanager

from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.executor.executor import STEP_LIMIT, Executor
from services.trainer.executor.macros import Tile, parse_macro
from services.trainer.executor.outcome import GameView, MacroResult
from shared.game.ram.variables import entries
from studies.plans.placing import put


class Played:
    """A session, driven by macros."""

    def __init__(self, session: GameSession) -> None:
        self.session = session

    @property
    def view(self) -> GameView:
        return GameView(self.session.state, self.session.image)

    def do(self, text: str, limit: int = STEP_LIMIT) -> MacroResult:
        """Carry out one macro; one action a step, none after its end."""
        executor = Executor(parse_macro(text), self.view, limit)
        while (action := executor.next(self.view)) is not None:
            self.session.step(action)
        assert executor.result is not None
        assert executor.result.steps <= limit
        return executor.result

    def outcomes(self, *texts: str) -> list[str]:
        return [self.do(text).outcome for text in texts]

    def poke(self, name: str, value: int, offset: int = 0) -> None:
        self.session.emulator.poke(entries()[name].address + offset, value)

    def put(self, group: int, room: int, tile: Tile) -> None:
        """Put the hero on a tile of any room, in play."""
        assert put(self.session, (group, room), tile)

    def own(self, item: int) -> None:
        """Give the hero an item, on button B."""
        self.poke("treasure_flags", 1 << (item & 7), item >> 3)
        self.poke("equipped_b", item)
        self.session.step(0)


@contextmanager
def played(world: str, difficulty: str = "harmless") -> Iterator[Played]:
    session = GameSession(EnvConfig.of({"world": world, "difficulty": difficulty}))
    session.reset()
    try:
        yield Played(session)
    finally:
        session.close()
