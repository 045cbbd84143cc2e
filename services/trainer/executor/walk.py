"""Walks to a tile: plans a path, follows it, and plans again when the grid changes or something is in the way."""

from typing import Final

from services.trainer.executor.macros import Tile
from services.trainer.executor.navigation_grid import NARROW, WIDE, NavigationGrid, Place, navigation_grid, warp_tiles
from services.trainer.executor.outcome import DONE, STEPS, WALK, GameView, RoutineEnd
from services.trainer.executor.path import corners, find_path
from shared.game.decoding.grid import Grid

ARRIVED: Final = 2  # pixels; a step is 4, so one position within this distance is always reachable
BESIDE: Final = 3  # pixels beside the line; further, and the next step could touch a wall
PATIENCE: Final = 6  # steps without movement until the place ahead counts as blocked; fewer, and a slow push does
MAX_BLOCKED: Final = 4  # blocked places until the walk gives up
LEAVING: Final = 24  # steps against the edge of a room without a scroll; crossing it takes 3


class WalkRoutine:
    """The walk to one tile of the current room. `next` returns an action, or how the walk ended."""

    def __init__(self, tile: Tile) -> None:
        self._tile = tile
        self._grid: Grid | None = None
        self._navigation: NavigationGrid | None = None
        self._ahead: list[Place] = []
        self._blocked: set[Place] = set()
        self._last, self._still = (-1, -1), 0

    def next(self, view: GameView) -> int | RoutineEnd:
        """The next action. The hero must be under control."""
        state = view.state
        here = state.x, state.y
        self._still = self._still + 1 if here == self._last else 0
        self._last = here
        if state.grid is not self._grid or self._navigation is None:
            self._blocked.clear()
            if not self._plan(view):
                return RoutineEnd("stuck", f"no way from {view.standing} to {self._tile}")
        elif self._still >= PATIENCE and self._ahead:  # he also stands still where he has arrived, until he turns
            self._still = 0
            self._blocked.add(self._ahead[0])
            if len(self._blocked) > MAX_BLOCKED or not self._plan(view):
                return RoutineEnd("stuck", f"something is in the way from {view.standing} to {self._tile}")
        return self._follow(*here)

    def _plan(self, view: GameView) -> bool:
        """Find a path over wide places, else over narrow ones. False if neither leads to the tile."""
        state = view.state
        self._grid = state.grid
        avoided = warp_tiles(view.tiles, state.outdoors) - {self._tile}
        for size in (WIDE, NARROW):
            navigation = navigation_grid(state.grid, size)
            near = navigation.near(state.x, state.y)
            path = find_path(navigation, near, navigation.on_tile(self._tile), avoided, self._blocked)
            if path is not None:
                self._navigation, self._ahead = navigation, corners(path)
                return True
        return False

    def _follow(self, x: int, y: int) -> int | RoutineEnd:
        """The step towards the next corner: first onto its line, then along it."""
        if self._navigation is None:
            raise RuntimeError("the walk has no plan yet")
        while self._ahead:
            goal = self._navigation.position(self._ahead[0])
            dx, dy = goal[0] - x, goal[1] - y
            if abs(dx) <= ARRIVED and abs(dy) <= ARRIVED:
                self._ahead.pop(0)
                continue
            return WALK[_towards(dx, dy)]
        return DONE


def _towards(dx: int, dy: int) -> int:
    """The direction to walk: the shorter way first if it leads onto the line, else along the line."""
    across, along = (dx, dy) if abs(dx) < abs(dy) else (dy, dx)
    sideways = abs(dx) < abs(dy)
    if abs(across) > BESIDE or abs(along) <= ARRIVED:
        return _direction(across, sideways)
    return _direction(along, not sideways)


def _direction(distance: int, horizontal: bool) -> int:
    if horizontal:
        return 1 if distance > 0 else 3
    return 2 if distance > 0 else 0


class LeaveRoomRoutine:
    """Walks out of the room on one side: to the tile at the edge, then on until the room scrolls."""

    def __init__(self, tile: Tile, grid: Grid) -> None:
        """`tile` lies one column or row beyond the room."""
        last = grid.width // 2 - 1, grid.height // 2 - 1
        edge = min(max(tile[0], 0), last[0]), min(max(tile[1], 0), last[1])
        self._direction = STEPS.index((tile[0] - edge[0], tile[1] - edge[1]))
        self._walk = WalkRoutine(edge)
        self._walking, self._pressed = True, 0

    def next(self, view: GameView) -> int | RoutineEnd:
        """The next action; the room's change ends the macro, not this routine."""
        if self._walking:
            action = self._walk.next(view)
            if not isinstance(action, RoutineEnd) or action.outcome != "done":
                return action
            self._walking = False
        self._pressed += 1
        if self._pressed > LEAVING:
            return RoutineEnd("stuck", "no room lies beyond this edge")
        return WALK[self._direction]
