"""Follows one episode through the cells of the state archive."""

from services.trainer.state_archive.cell import TILES_PER_CELL, ArchiveCell, cell_of, coarse_tile, may_restart
from services.trainer.state_archive.goal import ArchiveGoal, rupees_of
from shared.game.decoding.state import GameState, RoomKey, Scene
from shared.game.observation.counters import EpisodeCounters


class CellWatch:
    """Finds the states that may be in another cell than the last one. In the same cell a look costs a comparison."""

    def __init__(self, tiles: int = TILES_PER_CELL) -> None:
        """A cell spans `tiles` x `tiles` tiles."""
        self._tiles = tiles
        self._tile, self._packed = (-1, -1), b""
        self._scene: Scene | None = None

    def enter(self, state: GameState, counters: EpisodeCounters) -> ArchiveCell | None:
        """The cell of the present state; None if tile, scene and counters are as before, or the hero has no control."""
        tile, packed = coarse_tile(state.x, state.y, self._tiles), counters.packed
        same = tile == self._tile and state.scene is self._scene and packed is self._packed
        if same or not may_restart(state):
            return None
        self._tile, self._scene, self._packed = tile, state.scene, packed
        return cell_of(state, counters.values, self._tiles)


class GoalWatch:
    """Notes when one episode reaches a goal, also without control: what ends the game leaves none."""

    def __init__(self, goal: ArchiveGoal | None) -> None:
        self._goal, self.reached = goal, False
        self._seen: tuple[RoomKey, int, bytes] | None = None

    def look(self, state: GameState, counters: EpisodeCounters) -> None:
        """Look at the present state. In the same room, with the same money and counters, a look costs a comparison."""
        if self._goal is None or self.reached:
            return
        rupees = rupees_of(state)
        seen = state.key, rupees, counters.packed
        if seen != self._seen:
            self._seen = seen
            self.reached = self._goal.reached_in(cell_of(state, counters.values), rupees)
