"""A line of states.jsonl: the decoded state of one step in words and numbers for people and judges.

It never contains rewards: judges see facts and events only. A value that the game lacks or that is unknown is null,
never 0. Positions are pixels of the room, health is in quarters of a heart. Row n holds the state after action n of the
segment. The state before action 0, the last row of the previous segment, is a file of its own: before.json.
"""

from typing import Annotated, Any, Final

from pydantic import Field
from pydantic_core import to_json

from shared.contracts.base import Contract
from shared.game.decoding.names import (
    ACTIONS,
    DIRECTIONS,
    FISTS,
    GROUP_AREAS,
    PUSH_REST,
    SEASONS,
    SOUND_EVENTS,
    TREASURES,
)
from shared.game.decoding.objects import GameObject
from shared.game.decoding.state import Dialog, GameState, Scene

Byte = Annotated[int, Field(ge=0, le=255)]
Count = Annotated[int, Field(ge=0, le=65_535)]
Word = Annotated[str, Field(max_length=30)]
MAX_THINGS: Final = 32


class DialogRow(Contract):
    """The text box."""

    text: Annotated[int, Field(ge=0, le=0xFFFF, description="number of the text")]
    line: Annotated[str, Field(max_length=16, description="the line being printed")]
    waiting: Annotated[bool, Field(description="for a button")]
    choosing: Annotated[bool, Field(description="an answer has to be chosen")]
    choice: Byte | None = None


class ThingRow(Contract):
    """An enemy, a person, a thing to pick up or a flying danger."""

    id: Byte
    variant: Byte
    x: Byte
    y: Byte
    health: Annotated[Byte | None, Field(description="of an enemy")] = None


class PuzzleRow(Contract):
    """The movable parts of the room."""

    enemies_left: Annotated[Byte, Field(description="still to be beaten")]
    buttons_down: Annotated[Count | None, Field(description="floor buttons held down")] = None
    toggles: Byte | None = None
    switches: Byte | None = None
    torches: Byte | None = None
    shutters_open: Byte | None = None
    pushing: Annotated[bool | None, Field(description="the hero pushes against something")] = None


class StateRow(Contract):
    """One step of a segment."""

    step: Annotated[int, Field(ge=0, description="step of the episode")]
    action: Word
    x: Byte
    y: Byte
    facing: Word
    control: Annotated[bool, Field(description="the hero obeys the buttons")]
    enemies: Annotated[list[ThingRow], Field(max_length=MAX_THINGS)]
    talkables: Annotated[list[ThingRow], Field(max_length=MAX_THINGS)]
    pickups: Annotated[list[ThingRow], Field(max_length=MAX_THINGS)]
    dangers: Annotated[list[ThingRow], Field(max_length=MAX_THINGS)]
    events: Annotated[list[Word] | None, Field(max_length=16, description="what the game's sound log says")] = None
    area: Annotated[Word, Field(description="kind of map the room belongs to")]
    group: Annotated[int, Field(ge=0, le=7)]
    room: Byte
    health: Byte
    max_health: Byte
    heart_pieces: Byte | None = None
    rupees: Count | None = None
    ore: Count | None = None
    bombs: Count | None = None
    seeds: Count | None = None
    sword: Byte | None = None
    shield: Byte | None = None
    keys: Annotated[Byte | None, Field(description="small keys of the current dungeon; null outside")] = None
    treasures: Annotated[list[Word] | None, Field(max_length=128)] = None
    essences: Annotated[Byte | None, Field(description="number of essences")] = None
    season: Word | None = None
    in_dungeon: bool | None = None
    dungeon: Byte | None = None
    floor: Byte | None = None
    transition: Annotated[bool, Field(description="between two rooms")]
    cutscene: bool
    dying: bool
    menu: Annotated[Byte | None, Field(description="0 none")] = None
    dialog: Annotated[DialogRow | None, Field(description="null when no text is shown")] = None
    puzzle: PuzzleRow
    rooms_visited: Count
    items_taken: Count
    doors_opened: Count
    deaths: Count | None = None
    kills: Count | None = None


class StateRowWriter:
    """Writes the states of one segment, each as one line of JSON without its newline.

    The scene (see state.Scene) is most of a row and unchanged in most steps: its part is rebuilt only when it changes.
    """

    def __init__(self) -> None:
        self._scene: Scene | None = None
        self._scene_json = b""

    def line(self, state: GameState, step: int, action: int) -> str:
        """The row of a state, valid as a StateRow."""
        if state.scene is not self._scene:
            self._scene, self._scene_json = state.scene, to_json(_scene_fields(state))
        return (to_json(_step_fields(state, step, action))[:-1] + b"," + self._scene_json[1:]).decode()


def _step_fields(state: GameState, step: int, action: int) -> dict[str, Any]:
    return {
        "step": step,
        "action": ACTIONS[action],
        "x": state.x,
        "y": state.y,
        "facing": DIRECTIONS[state.facing],
        "control": state.control,
        "enemies": [{**_thing(thing), "health": thing.health} for thing in state.enemies],
        "talkables": [_thing(thing) for thing in state.talkables],
        "pickups": [_thing(thing) for thing in state.pickups],
        "dangers": [_thing(thing) for thing in state.dangers],
        "events": events(state),
    }


def _scene_fields(state: GameState) -> dict[str, Any]:
    own, seen = state.inventory, state.progress
    return {
        "area": GROUP_AREAS[state.group],
        "group": state.group,
        "room": state.room,
        "health": own.health,
        "max_health": own.max_health,
        "heart_pieces": own.heart_pieces,
        "rupees": own.rupees,
        "ore": own.ore,
        "bombs": own.bombs,
        "seeds": own.seeds,
        "sword": own.sword,
        "shield": own.shield,
        "keys": state.keys,
        "treasures": None if own.treasures is None else _owned(own.treasures),
        "essences": None if own.essences is None else own.essences.bit_count(),
        "season": None if state.season is None else SEASONS[state.season],
        "in_dungeon": state.in_dungeon,
        "dungeon": state.dungeon,
        "floor": state.floor,
        "transition": state.transition,
        "cutscene": state.cutscene,
        "dying": state.dying,
        "menu": state.menu,
        "dialog": None if state.dialog is None else _dialog(state.dialog),
        "puzzle": _puzzle(state),
        "rooms_visited": seen.rooms_visited,
        "items_taken": seen.items_taken,
        "doors_opened": seen.doors_opened,
        "deaths": own.deaths,
        "kills": own.kills,
    }


def events(state: GameState) -> list[str] | None:
    """Events of this step in words; None if the game keeps no log."""
    if state.sounds is None:
        return None
    return [SOUND_EVENTS[sound] for sound in state.sounds if sound in SOUND_EVENTS]


def _owned(treasures: frozenset[int]) -> list[str]:
    return [TREASURES.get(number, f"treasure {number:02x}") for number in sorted(treasures - {FISTS})]


def _thing(thing: GameObject) -> dict[str, int]:
    return {"id": thing.id, "variant": thing.variant, "x": thing.x, "y": thing.y}


def _dialog(dialog: Dialog) -> dict[str, Any]:
    return {
        "text": dialog.text,
        "line": dialog.line,
        "waiting": dialog.waiting,
        "choosing": dialog.choosing,
        "choice": dialog.choice,
    }


def _puzzle(state: GameState) -> dict[str, Any]:
    puzzle = state.puzzle
    return {
        "enemies_left": puzzle.enemies_left,
        "buttons_down": None if puzzle.triggers is None else puzzle.triggers.bit_count(),
        "toggles": puzzle.toggles,
        "switches": puzzle.switches,
        "torches": puzzle.torches,
        "shutters_open": puzzle.shutters_open,
        "pushing": None if puzzle.push is None else puzzle.push < PUSH_REST,
    }
