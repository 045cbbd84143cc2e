"""A player with nothing but buttons: walks, talks, fights, pushes, guided by RAM and the map of the world.

Each move ends in what it was for or in a StuckError that says where and why: the player is a test of the RAM map.
"""

from bramble.emulator import BrambleEmulator
from bramble.solver.router import CUT, LIFT, RouteNode, Router
from bramble.worlds.model import ENEMIES, STEPS, TREASURES, Cell, RoomId, World

OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}
MIDDLE_X, MIDDLE_Y = 8, 5
"""Point of a cell where the hero's feet are in its middle: his body is 6 wide and reaches from y to y + 5."""
SLACK = 3
BRINK = 6
"""A jump starts closer than this to the hole, in pixels."""
MAX_STEPS_PER_CELL = 40
FIGHT_LIMIT = 900
ENEMY_SLOTS = 8
BOSS = ENEMIES["boss"]
REACH, WIDTH, TURNING = 24, 11, 16
BOSS_NEAR, BOSS_FAR, BOSS_WIDTH = 22, 34, 14
UP = 0
PLAYING, TEXT_YES = 1, 0


class StuckError(Exception):
    """The player could not do what he set out to do."""


class Walker:
    """Plays one game. `limit` is the number of steps after which he gives up."""

    def __init__(self, game: BrambleEmulator, world: World, limit: int = 60000) -> None:
        self.game = game
        self.world = world
        self.router = Router(world, game)
        self.limit = limit
        self.fights = True

    # ---- senses ----

    @property
    def room_id(self) -> RoomId:
        """The room he is in."""
        return self.router.here()[0]

    @property
    def cell(self) -> Cell:
        """The cell under his feet."""
        return self.router.here()[1]

    @property
    def position(self) -> tuple[int, int]:
        """Centre of the body in pixels of the room."""
        return self.game.value("link_x"), self.game.value("link_y")

    def enemies(self) -> list[tuple[int, int, int]]:
        """Where the enemies of the room are, in pixels, and of which kind."""
        read = self.game.read
        slots = [0xD080 + 0x100 * n for n in range(ENEMY_SLOTS)]
        return [(read(slot + 0x0D), read(slot + 0x0B), read(slot + 1)) for slot in slots if read(slot)]

    def owns(self, name: str) -> bool:
        """Whether he has a treasure."""
        return self.router.owns(name)

    def stuck(self, what: str) -> StuckError:
        """A mistake that names where it happened."""
        return StuckError(f"{what} (room {self.room_id}, cell {self.cell}, step {self.game.steps})")

    # ---- time ----

    def press(self, action: str, steps: int = 1) -> None:
        """Hold a button for some steps."""
        for _ in range(steps):
            if self.game.steps >= self.limit:
                raise self.stuck(f"not finished in {self.limit} steps")
            self.game.step(action)

    def settle(self) -> None:
        """Let a scroll, a warp, a fall or a knock-back end; sit through a dialog that opened by itself."""
        while True:
            value = self.game.value
            if value("text_active"):
                self.read_text()
            elif value("scroll_mode") != PLAYING or value("link_state") != 1 or value("link_knockback"):
                self.press("nop")
            else:
                return

    def read_text(self, answer: int = TEXT_YES) -> None:
        """Press A until the dialog is over. A question is answered: 0 yes, 1 no."""
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
        """Turn: a held arrow key also walks if it can."""
        if self.game.value("link_direction") != list(STEPS).index(direction):
            self.press(direction)
            self.press("nop")

    def _arrow(self, target: Cell) -> str | None:
        """Arrow key towards the middle of a neighbouring cell (or this one): first onto the axis, then along it."""
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
        """Walk to a neighbouring cell; cut or lift what is in the way. False when something interfered."""
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
        """Cut or lift what grows or lies on a neighbouring cell."""
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
        """Over the edge of the room."""
        direction = next(side for side in STEPS if before.neighbour(side) == node[0])
        for _ in range(MAX_STEPS_PER_CELL):
            self.press(direction)
            if self.room_id != before:
                break
        self.settle()

    def travel(self, room_id: RoomId, cell: Cell | None = None) -> None:
        """Walk to a room, or to a cell of it, through as many rooms as it takes."""
        for attempt in range(200):
            self.fights = attempt % 40 < 30  # whoever cannot be hit is walked past
            self.settle()
            if self.room_id == room_id and cell in (None, self.cell):
                self.fights = True
                return
            path = self.router.path(room_id, cell)
            if path is None:
                raise self.stuck(f"there is no way to room {room_id} cell {cell}")
            self._follow(path)
        raise self.stuck(f"could not get to room {room_id} cell {cell}")

    def _follow(self, path: list[RouteNode]) -> None:
        """Walk along a way until its end or until something interferes."""
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
        """Whether a cell is this one or a neighbour."""
        return abs(cell[0] - self.cell[0]) + abs(cell[1] - self.cell[1]) <= 1

    def jump(self, land: Cell) -> None:
        """Over a hole to the second cell: from the brink, so that the flight is long enough."""
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
        """Stand on a stump and swing the rod until it is that season."""
        for _ in range(8):
            if self.router.season() == season:
                return
            self.use("rod")
            self.settle()
        raise self.stuck(f"the rod does not bring season {season}")

    # ---- doing ----

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
        """Put an item of the pack on B by the menu."""
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
        """Go beside a person, sign or chest, press A, and read what comes."""
        for _ in range(6):
            self.travel(room_id, self.beside(room_id, cell))
            self.face(self.direction_to(cell))
            self.press("a")
            self.press("nop", 2)
            if self.game.value("text_active"):
                self.read_text(answer)
                self.settle()
                return
        raise self.stuck(f"nobody answers at {cell}")

    def beside(self, room_id: RoomId, cell: Cell) -> Cell:
        """The nearest free cell beside a cell; below it if there is a choice."""
        options = []
        for order, name in enumerate(("down", "up", "left", "right")):
            dx, dy = STEPS[name]
            spot = cell[0] + dx, cell[1] + dy
            path = self.router.path(room_id, spot) if 0 <= spot[0] < 10 and 0 <= spot[1] < 8 else None
            if path is not None:
                options.append((len(path), order, spot))
        if not options:
            raise self.stuck(f"no way to stand beside {cell} of room {room_id}")
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
        """Stand before a locked door and push against it until it opens."""
        dx, dy = STEPS[direction]
        self.travel(self.room_id, (cell[0] - dx, cell[1] - dy))
        for _ in range(30):
            self.press(direction)
            if not self.game.value("room_collisions", cell[1] * 16 + cell[0]):
                return
        raise self.stuck(f"the door at {cell} does not open")

    # ---- fighting ----

    def strike_near(self) -> bool:
        """Strike at an enemy that is close and in line. True when he did."""
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
        """Beat every enemy of the room; come back if beaten."""
        room_id = self.room_id
        for _ in range(FIGHT_LIMIT):
            self.settle()
            if self.room_id != room_id:
                self.travel(room_id)
            elif not self.enemies():
                return
            elif not self.strike_near():
                self._approach()
        raise self.stuck("the enemies are still there")

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
        """Stand below the boss, out of his touch but within the sword's reach, and strike upwards."""
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
