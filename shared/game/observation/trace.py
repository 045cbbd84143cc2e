"""The history of an episode: tiles and rooms seen, recent actions. The observation and the rewards share it.

While a room scrolls in, the position of the hero is meaningless and not counted. Nor is what he jumps over.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final

from shared.game.decoding.grid import HAZARD, SOLID, STRIDE, Grid, tile_of
from shared.game.decoding.names import ACTIONS
from shared.game.decoding.state import GameState, RoomKey, Scene

TILES: Final = 176
UNSEEN, SEEN, BLOCKED = 0, 1, 2
RECENT: Final = 16  # actions remembered
_IS_MOVE: Final = tuple(int(1 <= action <= 4) for action in range(len(ACTIONS)))
_IS_PRESS: Final = tuple(int(5 <= action <= 6) for action in range(len(ACTIONS)))
# Blocked tiles are no frontier: four solid quarters, a hazard, or a solid tile.
_BLOCKED_TABLE: Final = bytes(
    BLOCKED if value in (0x0F, HAZARD) or value in SOLID else UNSEEN for value in range(256)
)  # fmt: skip


class EpisodeTrace:
    """The history of one episode. `new_tile` and `new_room` describe the last step only."""

    def __init__(self, state: GameState) -> None:
        """Start an episode at `state`: its tile and room count as seen."""
        self.tiles = 0
        self.rooms: set[RoomKey] = set()
        self.since_tile = self.since_room = 0
        self.actions: deque[int] = deque(maxlen=RECENT)
        self.streak = self.moves = self.presses = 0
        self.moved = (0, 0)
        self.version = 0  # increases whenever a tile changes its mark
        self._maps: dict[RoomKey, bytearray] = {}
        self._grids: dict[RoomKey, Grid] = {}
        self._scene: Scene | None = None
        self._key, self._x, self._y = state.key, state.x, state.y
        self.here = bytearray(TILES)
        self._here_key: RoomKey | None = None
        self._last_column = self._last_row = 0
        self._counts = (0, 0)
        self.place = 0
        self._enter(state)
        self._stand(state.x, state.y)
        self.new_tile = self.new_room = False

    def step(self, state: GameState, action: int) -> None:
        """Record one step."""
        self._record_action(action)
        self.since_tile += 1
        self.since_room += 1
        self.new_tile = self.new_room = False
        x, y = state.x, state.y
        if state.scene is self._scene:
            self.moved = (x - self._x, y - self._y)
        else:
            self._enter(state)
        self._x, self._y = x, y
        if not state.transition and not state.airborne:
            self._stand(x, y)

    def _record_action(self, action: int) -> None:
        """Add the action to the recent ones and drop the oldest."""
        actions = self.actions
        if len(actions) == RECENT:
            oldest = actions[0]
            self.moves -= _IS_MOVE[oldest]
            self.presses -= _IS_PRESS[oldest]
        self.moves += _IS_MOVE[action]
        self.presses += _IS_PRESS[action]
        self.streak = self.streak + 1 if actions and actions[-1] == action else 1
        actions.append(action)

    def memory(self) -> dict[RoomKey, bytes]:
        """The marks of each room seen so far, to continue this episode from a saved state."""
        return {key: bytes(marks) for key, marks in self._maps.items()}

    def restore(self, memory: Mapping[RoomKey, bytes]) -> None:
        """Continue an earlier episode: what it had seen is not new. Call this before the first step."""
        for key, earlier in memory.items():
            marks = self._maps.setdefault(key, bytearray(earlier))
            for place, mark in enumerate(earlier):
                if mark == SEEN:
                    marks[place] = SEEN
        self.rooms = set(self._maps)
        self.tiles = sum(marks.count(SEEN) for marks in self._maps.values())
        if self._here_key is not None:
            self._counts = _count(self.here, self._grids[self._here_key])
        self.version += 1

    def coverage(self) -> float:
        """Share of the room's walkable tiles that were seen."""
        seen, unseen = self._counts
        return seen / (seen + unseen) if seen + unseen else 1.0

    def unseen(self, state: GameState) -> tuple[int, int, int, int]:
        """Tiles to the nearest unseen one up, right, down and left in line with the hero; 0 without one."""
        row, column = divmod(self.place, STRIDE)
        along, across = self.here[column::STRIDE], self.here[row * STRIDE : row * STRIDE + state.grid.width // 2]
        right, down = across.find(UNSEEN, column + 1), along.find(UNSEEN, row + 1, state.grid.height // 2)
        up, left = along.rfind(UNSEEN, 0, row), across.rfind(UNSEEN, 0, column)
        return (
            row - up if up >= 0 else 0,
            right - column if right >= 0 else 0,
            down - row if down >= 0 else 0,
            column - left if left >= 0 else 0,
        )

    def _enter(self, state: GameState) -> None:
        """The scene changed: select the room's marks, unless the room is still scrolling in."""
        key, grid = state.key, state.grid
        self.moved = (state.x - self._x, state.y - self._y) if key == self._key else (0, 0)
        self._key, self._scene = key, state.scene
        if state.transition and self.rooms:
            return
        if key not in self.rooms:
            self.rooms.add(key)
            self.new_room, self.since_room = True, 0
        if self._grids.get(key) is not grid:
            self._mark(key, grid)
        if self._here_key != key:
            self._here_key, self.here = key, self._maps[key]
            self._counts = _count(self.here, grid)
            self._last_column, self._last_row = grid.width // 2 - 1, grid.height // 2 - 1

    def _stand(self, x: int, y: int) -> None:
        """Mark the tile under the hero's feet."""
        column, row = tile_of(x, y)
        if column > self._last_column:
            column = self._last_column
        if row > self._last_row:
            row = self._last_row
        self.place = place = row * STRIDE + column
        tiles = self.here
        if tiles[place] != SEEN:
            if tiles[place] == UNSEEN:
                self._counts = self._counts[0] + 1, self._counts[1] - 1
            tiles[place] = SEEN
            self.tiles += 1
            self.version += 1
            self.new_tile, self.since_tile = True, 0

    def _mark(self, key: RoomKey, grid: Grid) -> None:
        """The room is new or its walls changed: mark its blocked tiles."""
        known = self._maps.get(key)
        fresh = bytearray(grid.source.translate(_BLOCKED_TABLE))
        if known is not None:
            for place, mark in enumerate(known):
                if mark == SEEN:
                    fresh[place] = SEEN
        self._maps[key], self._grids[key] = fresh, grid
        self._here_key = None
        self.version += 1


def _count(tiles: bytearray, grid: Grid) -> tuple[int, int]:
    """Seen and unseen tiles of the room."""
    width, height = grid.width // 2, grid.height // 2
    room = b"".join(tiles[row * STRIDE : row * STRIDE + width] for row in range(height))
    return room.count(SEEN), room.count(UNSEEN)
