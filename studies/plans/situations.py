"""Situations of Bramble in which a model is asked: an open dialog, an open puzzle, or a place where it gives advice.

They follow from the texts of the worlds: equal names are equal states, on every machine. Enemies do no harm, so that a
plan is measured and not a fight.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import bramble
from bramble.planner.search import BUTTON, HEAVY, cells_with
from bramble.worlds.model import STEPS, Room, RoomId
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.executor.executor import Executor
from services.trainer.executor.macros import Interact, Tile
from services.trainer.executor.outcome import GameView
from shared.contracts.driver import QuestionMode
from shared.game.decoding.state import RoomKey
from shared.game.emulator.start import StartState
from studies.plans.placing import FLOOR, put

WORLDS: Final = ("garden", "vale", "realm")
OPENING: Final = 60  # steps until a dialog counts as not there: its owner may be absent


@dataclass(frozen=True, slots=True)
class Situation:
    """Where a model is asked; `tile` is the hero's, or that of the person or sign of a dialog."""

    mode: QuestionMode
    world: str
    room: RoomKey
    tile: Tile

    @property
    def name(self) -> str:
        """Its name, e.g. `puzzle/vale/5:12/4,3`."""
        return f"{self.mode}/{self.world}/{self.room[0]}:{self.room[1]:02x}/{self.tile[0]},{self.tile[1]}"


def candidates(mode: QuestionMode) -> list[Situation]:
    """Every situation of this kind that the worlds' texts promise, in an order that only their names decide."""
    found = [one for world in WORLDS for room in bramble.world(world).rooms.values() for one in _of(mode, world, room)]
    return sorted(found, key=lambda one: hashlib.sha256(one.name.encode()).digest())


def _of(mode: QuestionMode, world: str, room: Room) -> Iterator[Situation]:
    key = room.room_id.group, room.room_id.room
    if mode == "dialog":
        tiles = [obj.cell for obj in room.objects if obj.kind in ("person", "sign")]
    elif mode == "puzzle" and not (cells_with(room, BUTTON) or cells_with(room, HEAVY)):
        tiles = []
    else:
        tiles = [(c, r) for r, row in enumerate(room.rows) for c, letter in enumerate(row) if letter in FLOOR]
    return (Situation(mode, world, key, tile) for tile in tiles)


class Stage:
    """Open games of all worlds, in which situations are made and played."""

    def __init__(self) -> None:
        self._sessions: dict[str, GameSession] = {}

    def session(self, world: str) -> GameSession:
        """The game of this world."""
        if world not in self._sessions:
            config = EnvConfig.of({"world": world, "difficulty": "harmless"})
            self._sessions[world] = GameSession(config)
        return self._sessions[world]

    def make(self, situation: Situation) -> StartState | None:
        """The situation as a state; None if the game does not show it: no person is there, or the tile is no floor."""
        session = self.session(situation.world)
        session.takeover = None
        session.reset()
        if situation.mode == "dialog":
            return StartState(situation.name, session.emulator.save()) if _talk(session, situation) else None
        arrived = put(session, situation.room, situation.tile)
        standing = arrived and GameView(session.state, session.image).standing == situation.tile
        return StartState(situation.name, session.emulator.save()) if standing else None

    def close(self) -> None:
        """End all games."""
        for session in self._sessions.values():
            session.close()


def _talk(session: GameSession, situation: Situation) -> bool:
    """Stand beside the person or sign and press A until a dialog is open; False if none opens."""
    rows = bramble.world(situation.world).rooms[RoomId(*situation.room)].rows
    for dx, dy in STEPS.values():
        column, row = situation.tile[0] + dx, situation.tile[1] + dy
        free = 0 <= row < len(rows) and 0 <= column < len(rows[row]) and rows[row][column] in FLOOR
        if free and put(session, situation.room, (column, row)) and _opens(session, situation.tile):
            return True
    return False


def _opens(session: GameSession, tile: Tile) -> bool:
    executor = Executor(Interact(tile), GameView(session.state, session.image), OPENING)
    while session.state.dialog is None:
        action = executor.next(GameView(session.state, session.image))
        if action is None:
            return False
        session.step(action)
    return True


@contextmanager
def stage() -> Iterator[Stage]:
    """A stage that is closed at the end."""
    made = Stage()
    try:
        yield made
    finally:
        made.close()
