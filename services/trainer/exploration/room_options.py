"""Options that use what RAM says about the room: leave it, go to a target and act on it, strike at an enemy.

Random buttons seldom stand before the one tile that matters and then press the right button. These options go there by
the executor's paths and leave to chance what to try. They know no world's text and no meaning of a tile.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np

from services.trainer.executor.executor import Executor
from services.trainer.executor.macros import ITEMS, Macro, MoveTo, Tile, UseItem
from services.trainer.executor.outcome import STEPS, WAIT, WALK, A, B, GameView, StepChooser
from services.trainer.exploration.options import OptionMix, StickyOptions
from services.trainer.exploration.pushes import pushes_between
from services.trainer.exploration.targets import Target, targets_of
from services.trainer.options.choices import leave_room
from services.trainer.options.strikes import Strikes, item_buttons
from shared.game.decoding.state import RoomKey

PUSHES: Final = 8  # steps against a tile; the games move a block or open a lock after 20 frames
PRESSES: Final = 2
ACROSS: Final = 9  # steps into a hazard: a jump takes 32 frames, and he must land before the next tile
LANDING: Final = 8  # steps until he has landed from a jump that was made on the spot
MACRO_STEPS: Final = 80  # a walk across a small room takes 40
VISITED: Final = 0x10  # bit of a room's flags
TRIES: Final = 6  # options that cannot begin here, until a sticky one is drawn


@dataclass(frozen=True, slots=True)
class RoomMix:
    """How often each kind of option is drawn, as weights."""

    sticky: float = 4.0
    leave: float = 3.0
    target: float = 4.0
    strike: float = 3.0
    """Only while the room has enemies."""
    push: float = 2.0
    press: float = 4.0
    item: float = 0.5
    push_onto: float = 1.0
    """Of the ways to act on a target that is solid: push it, press A and B, use any item of the inventory, push it onto
    another tile."""
    unvisited: float = 6.0
    """How much rather a way out is taken to a room not visited yet, where the game says so."""
    buttons: OptionMix = field(default_factory=OptionMix)


Kind = TypeVar("Kind")
Floor = Mapping[int, Sequence[Tile]]
"""By kind, the tiles where the hero can stand."""


class RoomOptions:
    """Draws the actions of one rollout. Equal generator and views give equal actions."""

    def __init__(self, rng: np.random.Generator, mix: RoomMix) -> None:
        self._rng, self._mix = rng, mix
        self._sticky = StickyOptions(rng, mix.buttons)
        self._running: StepChooser | None = None
        self._tried: Counter[tuple[RoomKey, int]] = Counter()

    def next(self, view: GameView) -> int:
        """The action of the next step."""
        action = None if self._running is None else self._running.next(view)
        if action is not None:
            return action
        self._running = None
        state = view.state
        if self._sticky.running or state.dialog is not None or state.menu or not state.control:
            return self._sticky.next(view)
        for _ in range(TRIES):
            option = self._draw(view)
            if option is None:
                break
            action = option.next(view)
            if action is not None:
                self._running = option
                return action
        return self._sticky.next(view)

    def _draw(self, view: GameView) -> StepChooser | None:
        """Draw an option; None: sticky actions."""
        mix = self._mix
        strike = mix.strike if view.state.enemies else 0.0
        kinds: tuple[tuple[float, Callable[[GameView], StepChooser | None]], ...] = (
            (mix.sticky, lambda view: None),
            (mix.leave, self._leave),
            (mix.target, self._target),
            (strike, self._strike),
        )
        return self._choose(kinds)(view)

    def _choose(self, kinds: tuple[tuple[float, Kind], ...]) -> Kind:
        number = float(self._rng.random()) * sum(weight for weight, _ in kinds)
        for weight, kind in kinds:
            number -= weight
            if number < 0:
                return kind
        return kinds[-1][1]

    def _leave(self, view: GameView) -> StepChooser:
        sides = tuple(
            (self._mix.unvisited if flags is not None and not flags & VISITED else 1.0, side)
            for side, flags in enumerate(view.state.neighbours)
        )
        macro = leave_room(self._choose(sides), view)
        return _Sequence(iter(()) if macro is None else iter((macro,)))

    def _strike(self, view: GameView) -> StepChooser:
        buttons = item_buttons(view.state.inventory)
        return Strikes(buttons[int(self._rng.integers(len(buttons)))])

    def _target(self, view: GameView) -> StepChooser:
        """Go to a target, or beside it and act on it. Kinds tried before in this rollout are drawn less often."""
        owned = _items(view)
        offered, room = targets_of(view, hazards=bool(owned)), view.state.key
        of_kind = self._choose(tuple((1 / (1 + self._tried[room, kind]), found) for kind, found in offered.items()))
        target = of_kind[int(self._rng.integers(len(of_kind)))]
        self._tried[room, target.kind] += 1
        if not target.solid:
            return _Sequence(iter((MoveTo(target.tile),)))
        floor = {kind: [one.tile for one in found if not one.solid] for kind, found in offered.items()}
        act = self._cross if target.hazard else self._act
        return _Sequence(act(target, view, floor, owned))

    def _cross(self, target: Target, view: GameView, floor: Floor, owned: Sequence[int]) -> Iterator["Macro | _Held"]:
        """Walk beside a hazard, turn to it, use an item and walk on: so a hero jumps over a hole, or swims."""
        place = self._beside(target, floor)
        if place is None:
            return
        (beside, facing), item = place, owned[int(self._rng.integers(len(owned)))]
        inventory = view.state.inventory
        if beside != view.standing:
            yield MoveTo(beside)
        if item not in (inventory.equipped_a, inventory.equipped_b):
            yield UseItem(item, facing)  # puts it on B, and uses it once
            yield _Held(WAIT, LANDING)
        yield _Held(WALK[facing], 1)
        yield _Held(A if item == inventory.equipped_a else B, 1)
        yield _Held(WALK[facing], ACROSS)

    def _act(self, target: Target, view: GameView, floor: Floor, owned: Sequence[int]) -> Iterator["Macro | _Held"]:
        """Try one thing on a solid target: push it onto another tile, or walk beside it, turn to it and act."""
        mix = self._mix
        item = mix.item if owned else 0.0
        ways = (mix.push, "push"), (mix.press, "press"), (item, "item"), (mix.push_onto, "push_onto")
        way = self._choose(ways)
        if way == "push_onto":
            goal = self._floor_tile(floor)
            yield from pushes_between(target.tile, goal, view.standing, _standable(floor))
            return
        place = self._beside(target, floor)
        if place is None:
            return
        beside, facing = place
        if beside != view.standing:
            yield MoveTo(beside)
        turn = WALK[facing]
        if way == "push":
            yield _Held(turn, PUSHES)
        elif way == "item":
            yield UseItem(owned[int(self._rng.integers(len(owned)))], facing)
        else:
            yield _Held(turn, 1)
            yield _Held(A, PRESSES)
            yield _Held(B, PRESSES)

    def _beside(self, target: Target, floor: Floor) -> tuple[Tile, int] | None:
        """Draw a tile beside the target where the hero can stand, and the direction in which he then faces it."""
        (column, row), standable = target.tile, _standable(floor)
        sides = [side for side, (dx, dy) in enumerate(STEPS) if (column + dx, row + dy) in standable]
        if not sides:
            return None
        side = sides[int(self._rng.integers(len(sides)))]
        return (column + STEPS[side][0], row + STEPS[side][1]), (side + 2) % len(STEPS)

    def _floor_tile(self, floor: Floor) -> Tile:
        """Draw a tile where the hero can stand, of each kind as often as of any other."""
        tiles = self._choose(tuple((1.0, tiles) for tiles in floor.values() if tiles))
        return tiles[int(self._rng.integers(len(tiles)))]


def _items(view: GameView) -> list[int]:
    """The items that the hero has, by number."""
    return sorted(set(ITEMS.values()) & (view.state.inventory.treasures or frozenset()))


def _standable(floor: Floor) -> set[Tile]:
    return {tile for tiles in floor.values() for tile in tiles}


@dataclass(slots=True)
class _Held:
    """An action for some steps, or until a text is shown."""

    action: int
    left: int

    def next(self, view: GameView) -> int | None:
        self.left -= 1
        return self.action if self.left >= 0 and view.state.dialog is None else None


class _Sequence:
    """Macros and held actions one after another, until one fails."""

    def __init__(self, parts: Iterator[Macro | _Held]) -> None:
        self._parts = parts
        self._running: Executor | _Held | None = None

    def next(self, view: GameView) -> int | None:
        """The next action; None at the end."""
        while True:
            if self._running is None:
                part = next(self._parts, None)
                if part is None:
                    return None
                self._running = part if isinstance(part, _Held) else Executor(part, view, MACRO_STEPS)
            action = self._running.next(view)
            if action is not None:
                return action
            if isinstance(self._running, Executor) and not _done(self._running):
                return None
            self._running = None


def _done(executor: Executor) -> bool:
    return executor.result is not None and executor.result.outcome == "done"
