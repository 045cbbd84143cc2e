"""Plays with buttons alone: walks, talks, fights and pushes, guided by RAM and the map of the world.

Every action succeeds or raises a StuckError with place and reason, so that the walker also tests the RAM map.
"""

from bramble.emulator import BrambleEmulator
from bramble.solver.router import CUT, LIFT, RouteNode, Router
from bramble.worlds.model import ENEMIES, STEPS, TREASURES, Cell, RoomId, World

OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}
MIDDLE_X, MIDDLE_Y = 8, 5
"""Hero position within a cell that centres his feet: the body is 6 wide and reaches from y to y + 5."""
SLACK = 3
BRINK = 6
"""A jump starts at most this far from the hole, in pixels."""
MAX_STEPS_PER_CELL = 40
FIGHT_LIMIT = 900
DOOR_TRIES = 6
ENEMY_SLOTS = 8
BOSS = ENEMIES["boss"]
REACH, WIDTH, TURNING = 24, 11, 16
BOSS_NEAR, BOSS_FAR, BOSS_WIDTH = 22, 34, 14
UP = 0
PLAYING, TEXT_YES = 1, 0


class StuckError(Exception):
    """The walker could not complete an action."""


class Walker:
    """Plays one game. After `limit` steps it raises StuckError."""

    def __init__(self, game: BrambleEmulator, world: World, limit: int = 60000) -> None:
        self.game = game
        self.world = world
        self.router = Router(world, game)
        self.limit = limit
        self.fights = True

    # ---- observation ----

    @property
    def room_id(self) -> RoomId:
        """The current room."""
        return self.router.here()[0]

    @property
    def cell(self) -> Cell:
        """The cell under the hero's feet."""
        return self.router.here()[1]

    @property
    def position(self) -> tuple[int, int]:
        """Centre of the body, in pixels of the room."""
        return self.game.value("link_x"), self.game.value("link_y")

    def enemies(self) -> list[tuple[int, int, int]]:
        """(x, y, kind) of each enemy of the room, in pixels."""
        read = self.game.read
        slots = [0xD080 + 0x100 * n for n in range(ENEMY_SLOTS)]
        return [(read(slot + 0x0D), read(slot + 0x0B), read(slot + 1)) for slot in slots if read(slot)]

    def owns(self, name: str) -> bool:
        """Whether the hero has a treasure."""
        return self.router.owns(name)

    def stuck(self, what: str) -> StuckError:
        """A StuckError that names room, cell and step."""
        return StuckError(f"{what} (room {self.room_id}, cell {self.cell}, step {self.game.steps})")

    # ---- time ----

    def press(self, action: str, steps: int = 1) -> None:
        """Hold a button for some steps."""
        for _ in range(steps):
            if self.game.steps >= self.limit:
                raise self.stuck(f"not finished in {self.limit} steps")
            self.game.step(action)

    def settle(self) -> None:
        """Wait for the end of a scroll, warp, fall or knock-back, and close any dialog."""
        while True:
            value = self.game.value
            if value("text_active"):
                self.read_text()
            elif value("scroll_mode") != PLAYING or value("link_state") != 1 or value("link_knockback"):
                self.press("nop")
            else:
                return

    def read_text(self, answer: int = TEXT_YES) -> None:
        """Press A until the dialog closes. `answer` is 0 for yes, 1 for no."""
        while self.game.value("text_active"):
            choosing = self.game.value("text_display_mode") == 1
            if choosing and self.game.read(0xD0E8, 7) != answer:
                self.press("right")
                self.press("nop")
                continue
            self.press("a")
            self.press("nop")

    # ---- walking ----

    def face(self, direction: str) -> None:
        """Turn to a direction. The held arrow key also walks if the way is free."""
        if self.game.value("link_direction") != list(STEPS).index(direction):
            self.press(direction)
            self.press("nop")

    def _arrow(self, target: Cell) -> str | None:
        """Arrow key towards the middle of a neighbouring cell: first onto its axis, then along it."""
        x, y = self.position
        dx, dy = target[0] * 16 + MIDDLE_X - x, target[1] * 16 + MIDDLE_Y - y
        sideways = target[0] != self.cell[0]
        across, along = (dy, dx) if sideways else (dx, dy)
        across_keys, along_keys = (
            (("up", "down"), ("left", "right")) if sideways else (("left", "right"), ("up", "down"))
        )
        if abs(across) > SLACK:
            return across_keys[across > 0]
        if abs(along) > SLACK:
            return along_keys[along > 0]
        return None

    def step_to(self, target: Cell) -> bool:
        """Walk to a neighbouring cell and clear bushes and rocks. False if the walk was interrupted."""
        room_id = self.room_id
        for _ in range(MAX_STEPS_PER_CELL):
            if self.room_id != room_id or self.game.value("text_active"):
                self.settle()
                return False
            if self.fights and self.owns("sword") and self.strike_near():
                return False
            key = self._arrow(target)
            if key is None:
                return True
            self.clear_cell(target)
            self.press(key)
            if self.game.value("link_knockback") or self.game.value("link_state") != 1:
                self.settle()
                return False
        return False

    def clear_cell(self, target: Cell) -> None:
        """Cut the bush or lift the rock on a neighbouring cell."""
        column, row = target
        if target == self.cell or not self.game.value("room_collisions", row * 16 + column):
            return
        tile = self.router.tile(self.room_id, target, self.router.season())
        if tile.act == CUT:
            self.face(self.direction_to(target))
            self.use("sword")
        elif tile.act == LIFT:
            self.face(self.direction_to(target))
            self.press("a")
            self.press("nop", 2)
            self.press("a")
            self.press("nop", 6)

    def direction_to(self, target: Cell) -> str:
        """Direction of a neighbouring cell."""
        step = target[0] - self.cell[0], target[1] - self.cell[1]
        for name, delta in STEPS.items():
            if delta == step:
                return name
        raise self.stuck(f"{target} is not beside the hero")

    def _leave(self, node: RouteNode, before: RoomId) -> None:
        """Walk over the edge of the room."""
        direction = next(side for side in STEPS if before.neighbour(side) == node[0])
        for _ in range(MAX_STEPS_PER_CELL):
            self.press(direction)
            if self.room_id != before:
                break
        self.settle()

    def travel(self, room_id: RoomId, cell: Cell | None = None) -> None:
        """Walk to a room, or to a cell of it, through any number of rooms."""
        for attempt in range(200):
            self.fights = attempt % 40 < 30  # walk past an enemy that cannot be hit
            self.settle()
            if self.room_id == room_id and cell in (None, self.cell):
                self.fights = True
                return
            path = self.router.path(room_id, cell)
            if path is None:
                raise self.stuck(f"there is no path to room {room_id} cell {cell}")
            self._follow(path)
        raise self.stuck(f"room {room_id} cell {cell} was not reached")

    def _follow(self, path: list[RouteNode]) -> None:
        """Walk along a path until its end or an interruption."""
        for node in path:
            before = self.room_id
            if node[0] != before:
                self._leave(node, before)
            elif node[2] != self.router.season():
                self.turn_season(node[2])
            elif not self._is_step(node[1]):
                self.jump(node[1])
            elif not self.step_to(node[1]):
                self.settle()
                return
            self.settle()
            if (*self.router.here(), self.router.season()) != node:
                return

    def _is_step(self, cell: Cell) -> bool:
        """Whether a cell is the current one or a neighbour."""
        return abs(cell[0] - self.cell[0]) + abs(cell[1] - self.cell[1]) <= 1

    def jump(self, land: Cell) -> None:
        """Jump over a hole to the second cell. The jump starts at the edge, so that it is long enough."""
        column, row = self.cell
        button = self.button_for("feather")
        self.step_to(self.cell)
        direction = self.direction_to(((column + land[0]) // 2, (row + land[1]) // 2))
        self.face(direction)
        while self._gap(direction) > BRINK:
            self.press(direction)
        self.press(button)
        while self.game.value("link_in_air"):
            self.press(direction)
        self.settle()

    def _gap(self, direction: str) -> int:
        """Pixels to the edge of the cell in that direction, measured at the feet."""
        x, y = self.position[0] & 15, (self.position[1] + 5) & 15
        return {"up": y, "right": 15 - x, "down": 15 - y, "left": x}[direction]

    def turn_season(self, season: int) -> None:
        """On a stump, swing the rod until the season is right."""
        for _ in range(8):
            if self.router.season() == season:
                return
            self.use("rod")
            self.settle()
        raise self.stuck(f"the rod does not change the season to {season}")

    # ---- actions ----

    def button_for(self, item: str) -> str:
        """The button that holds an item; put it on B first when no button holds it."""
        number = TREASURES[item]
        if self.game.value("equipped_a") == number:
            return "a"
        if self.game.value("equipped_b") != number:
            self.equip(number)
        return "b"

    def use(self, item: str) -> None:
        """Press the button that holds an item."""
        self.press(self.button_for(item))
        self.press("nop", 3 if item == "sword" else 1)

    def equip(self, number: int) -> None:
        """Put an item of the inventory on B through the menu."""
        inventory = [self.game.value("inventory", slot) for slot in range(4)]
        self.press("start")
        self.press("nop", 5)
        for _ in range(inventory.index(number)):
            self.press("down", 2)
            self.press("nop", 4)
        self.press("b")
        self.press("nop", 5)
        self.press("start")
        self.press("nop", 2)

    def talk(self, room_id: RoomId, cell: Cell, answer: int = TEXT_YES) -> None:
        """Walk to a person, sign or chest, press A, and read the dialog."""
        for _ in range(6):
            self.travel(room_id, self.beside(room_id, cell))
            self.face(self.direction_to(cell))
            self.press("a")
            self.press("nop", 2)
            if self.game.value("text_active"):
                self.read_text(answer)
                self.settle()
                return
        raise self.stuck(f"no dialog opens at {cell}")

    def beside(self, room_id: RoomId, cell: Cell) -> Cell:
        """The nearest free cell beside a cell; the one below wins a tie."""
        options = []
        for order, name in enumerate(("down", "up", "left", "right")):
            dx, dy = STEPS[name]
            spot = cell[0] + dx, cell[1] + dy
            path = self.router.path(room_id, spot) if 0 <= spot[0] < 10 and 0 <= spot[1] < 8 else None
            if path is not None:
                options.append((len(path), order, spot))
        if not options:
            raise self.stuck(f"no path to a cell beside {cell} of room {room_id}")
        return min(options)[2]

    def push(self, block: Cell, direction: str) -> None:
        """Push a block one cell."""
        dx, dy = STEPS[direction]
        self.travel(self.room_id, (block[0] - dx, block[1] - dy))
        for _ in range(30):
            self.press(direction)
            if self.game.value("pushed_object_enabled"):
                break
        else:
            raise self.stuck(f"the block at {block} does not move {direction}")
        self.press("nop", 5)
        self.settle()

    def open_door(self, direction: str, cell: Cell) -> None:
        """Push against a locked door until it opens; return to the door after a defeat."""
        room_id, (dx, dy) = self.room_id, STEPS[direction]
        for _ in range(DOOR_TRIES):
            self.travel(room_id, (cell[0] - dx, cell[1] - dy))
            for _ in range(30):
                self.press(direction)
                if self.room_id != room_id:
                    break  # a beaten hero goes on elsewhere, where this cell may be free
                if not self.game.value("room_collisions", cell[1] * 16 + cell[0]):
                    return
        raise self.stuck(f"the door at {cell} does not open")

    # ---- fighting ----

    def strike_near(self) -> bool:
        """Strike an enemy that is close and in line. Returns whether there was one."""
        x, y = self.position
        for ex, ey, kind in self.enemies():
            dx, dy = ex - x, ey - y
            if kind != BOSS and min(abs(dx), abs(dy)) < WIDTH and max(abs(dx), abs(dy)) < REACH:
                self._strike(dx, dy)
                return True
        return False

    def _strike(self, dx: int, dy: int) -> None:
        direction = (("left", "right")[dx > 0]) if abs(dx) >= abs(dy) else (("up", "down")[dy > 0])
        if self.game.value("link_direction") != list(STEPS).index(direction) and max(abs(dx), abs(dy)) < TURNING:
            self.press(OPPOSITE[direction])  # turning is also a step: not into the enemy
        self.face(direction)
        self.use("sword")

    def clear_room(self) -> None:
        """Defeat every enemy of the room; return to the room after a defeat."""
        room_id = self.room_id
        for _ in range(FIGHT_LIMIT):
            self.settle()
            if self.room_id != room_id:
                self.travel(room_id)
            elif not self.enemies():
                return
            elif not self.strike_near():
                self._approach()
        raise self.stuck(f"the enemies are not defeated after {FIGHT_LIMIT} tries")

    def _approach(self) -> None:
        x, y = self.position
        ex, ey, kind = min(self.enemies(), key=lambda enemy: abs(enemy[0] - x) + abs(enemy[1] - y))
        if kind == BOSS:
            self._duel(ex - x, y - ey)
            return
        path = self.router.path(self.room_id, (ex >> 4, min(ey >> 4, 7)))
        inside = [node for node in path or [] if node[0] == self.room_id]
        if not path or len(inside) != len(path) or len(path) < 2 or not self._is_step(path[0][1]):
            self.press("nop")
            return
        self.step_to(path[0][1])

    def _duel(self, dx: int, below: int) -> None:
        """Strike upwards from below the boss, outside of his reach and within the sword's."""
        if below < BOSS_NEAR:
            self.press("down", 2)
        elif below > BOSS_FAR:
            self.press("up")
        elif abs(dx) > BOSS_WIDTH:
            self.press(("left", "right")[dx > 0])
        elif self.game.value("link_direction") != UP:
            self.press("up")
        else:
            self.use("sword")
