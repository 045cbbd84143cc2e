"""Routines of one room: push a block, use an item, talk and read."""

from typing import Final

from services.trainer.executor.macros import Interact, PushBlock, Tile, UseItem
from services.trainer.executor.outcome import DONE, START, STEPS, WAIT, WALK, A, B, GameView, RoutineEnd
from services.trainer.executor.walk import WalkRoutine
from shared.game.ram import offsets

PUSHING: Final = 40  # steps against a block until it counts as fixed; the games move it after 20 frames
SLIDING: Final = 12  # steps that a block slides at most
PRESSES: Final = 3  # of A without any effect, until nothing is there
EFFECT: Final = 4  # steps within which a press shows its effect
MENU_KEYS: Final = 60  # presses in the menu until equipping counts as impossible
SLOTS: Final = 16
_ASIDE: Final = (2, 0, 3, 1)  # sides to stand on, in the order tried: below, above, left, right


class PushRoutine:
    """Walks behind a block and pushes it by one tile, or opens a locked door by pushing against it."""

    def __init__(self, macro: PushBlock) -> None:
        dx, dy = STEPS[macro.direction]
        self._from, self._to = macro.tile, (macro.tile[0] + dx, macro.tile[1] + dy)
        self._walk: WalkRoutine | None = WalkRoutine((macro.tile[0] - dx, macro.tile[1] - dy))
        self._direction, self._pressed, self._waited = macro.direction, 0, 0
        self._moved = self._slid = False

    def next(self, view: GameView) -> int | RoutineEnd:
        """The next action, or the end."""
        if view.state.puzzle.push is None:
            return RoutineEnd("unknown", "this game's RAM does not show pushing")
        if self._walk is not None:
            if not _solid(view, self._from):
                return RoutineEnd("stuck", f"no block is at {self._from}")
            action = self._walk.next(view)
            if not isinstance(action, RoutineEnd) or action.outcome != "done":
                return action
            self._walk = None
        self._moved = self._moved or not _solid(view, self._from)
        if self._moved:
            return self._settle(view)
        self._pressed += 1
        if self._pressed > PUSHING:
            return RoutineEnd("stuck", f"the block at {self._from} does not move")
        return WALK[self._direction]

    def _settle(self, view: GameView) -> int | RoutineEnd:
        """Wait until the block has come to rest. What vanished without sliding was a door: it is open."""
        self._waited += 1
        sliding = view.image[offsets.PUSHED_OBJECT_ENABLED] != 0
        self._slid = self._slid or sliding
        if sliding and self._waited <= SLIDING:
            return WAIT
        arrived = not self._slid or _solid(view, self._to)
        return DONE if arrived else RoutineEnd("stuck", f"the block did not arrive at {self._to}")


class UseItemRoutine:
    """Turns, equips an item on B if no button holds it, and presses its button."""

    def __init__(self, macro: UseItem) -> None:
        self._item, self._direction = macro.item, macro.direction
        self._keys, self._gap, self._used, self._cursor = 0, False, 0, -1

    def next(self, view: GameView) -> int | RoutineEnd:
        """The next action, or the end."""
        inventory = view.state.inventory
        if inventory.equipped_a is None or inventory.treasures is None:
            return RoutineEnd("unknown", "this game's RAM does not show items")
        if self._used:
            self._used += 1
            return DONE if self._used > EFFECT else WAIT
        button = A if inventory.equipped_a == self._item else B if inventory.equipped_b == self._item else None
        if view.state.menu or button is None:
            return self._equip(view)
        if self._direction is not None and view.state.facing != self._direction:
            direction, self._direction = self._direction, None  # one step turns, and walks where the way is free
            return WALK[direction]
        self._used = 1
        return button

    def _equip(self, view: GameView) -> int | RoutineEnd:
        """One key of the item menu; every other step is a pause, because the menu reacts to presses."""
        self._keys, self._gap = self._keys + 1, not self._gap
        stored = view.image[offsets.INVENTORY : offsets.INVENTORY + SLOTS]
        held = self._item in (view.state.inventory.equipped_a, view.state.inventory.equipped_b)
        if self._item not in stored and not held:
            return RoutineEnd("stuck", "the hero does not have this item")
        if self._keys > MENU_KEYS:
            return RoutineEnd("stuck", "the item cannot be put on a button")
        if not self._gap:
            return WAIT
        if held or not view.state.menu:
            return START
        cursor, before = view.image[offsets.MENU_CURSOR_PAGE0], self._cursor
        self._cursor = cursor
        if cursor == stored.index(self._item):
            return B
        # Oracle lists the items in rows, Bramble one below the other: right, or down where that has no effect.
        return WALK[2] if cursor == before else WALK[1]


class InteractRoutine:
    """Walks beside a tile, faces it and presses A, until a dialog opens or the room changes."""

    def __init__(self, macro: Interact) -> None:
        self._tile, self._answer = macro.tile, macro.answer
        self._walk: WalkRoutine | None = None
        self._sides = [] if macro.tile is None else list(_ASIDE)
        self._presses, self._wait, self._read = 0, 0, False
        self._before: object = None

    def next(self, view: GameView) -> int | RoutineEnd:
        """The next action, or the end."""
        if view.state.dialog is not None:
            self._read = True
            return read_dialog(view, self._answer, self._pause())
        if self._read:
            return DONE
        if self._tile is not None and (self._walk is not None or self._sides):
            action = self._approach(view, self._tile)
            if action is not None:
                return action
        return self._press(view)

    def _pause(self) -> bool:
        self._wait += 1
        return self._wait % 2 == 0

    def _approach(self, view: GameView, tile: Tile) -> int | RoutineEnd | None:
        """An action towards the next side of the tile; None when the hero stands there and faces it."""
        while self._walk is None:
            if not self._sides:
                return RoutineEnd("stuck", f"no way to a tile beside {tile}")
            self._side = self._sides.pop(0)
            walk = WalkRoutine((tile[0] + STEPS[self._side][0], tile[1] + STEPS[self._side][1]))
            if not isinstance(walk.next(view), RoutineEnd) or _beside(view, tile, self._side):
                self._walk = walk
        action = self._walk.next(view)
        if not isinstance(action, RoutineEnd):
            return action
        if action.outcome != "done":
            self._walk = None
            return self._approach(view, tile)
        facing = (self._side + 2) % 4
        if view.state.facing != facing:
            return WALK[facing]
        self._walk, self._sides = None, []
        return None

    def _press(self, view: GameView) -> int | RoutineEnd:
        """Press A and wait for its effect."""
        if self._before is not None and self._before != _room(view):
            return DONE
        self._wait += 1
        if self._presses and self._wait % EFFECT:
            return WAIT
        if self._presses == PRESSES:
            return RoutineEnd("stuck", "nothing answers here")
        self._presses += 1
        self._wait, self._before = 0, _room(view)
        return A


def read_dialog(view: GameView, answer: int | None, pause: bool) -> int | RoutineEnd:
    """The action that continues an open dialog. A choice without an answer ends the macro, because it is a decision."""
    dialog = view.state.dialog
    if pause or dialog is None:
        return WAIT
    if dialog.choosing:
        if answer is None:
            return DONE
        if dialog.choice is None:
            return RoutineEnd("unknown", "this game's RAM does not show the choice")
        if dialog.choice != answer:
            return WALK[1]
    return A


def _solid(view: GameView, tile: Tile) -> bool:
    """Whether a tile stops the hero; none lies outside of the room."""
    column, row = tile[0] * 2, tile[1] * 2
    grid = view.state.grid
    if not (0 <= column < grid.width and 0 <= row < grid.height):
        return False
    return grid.rows[row][column] == 1


def _beside(view: GameView, tile: Tile, side: int) -> bool:
    return view.standing == (tile[0] + STEPS[side][0], tile[1] + STEPS[side][1])


def _room(view: GameView) -> tuple[object, ...]:
    """What a press of A may change."""
    state = view.state
    return state.grid, state.tile_ahead, state.inventory, state.progress, state.holding
