"""What the decoder says along the solver's walk is the truth of the game, and the observation is alive."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest

from services.trainer.env.config import EnvConfig
from services.trainer.env.player import Outcome, Player
from shared.game import layout
from shared.game.rows import events
from shared.game.state import GameState
from tests.unit.env.walks import at_random, play, playing, solve

# Features that do not vary in the walks below, each with its reason.
DEAD = {
    "area_underworld": "only Oracle of Seasons has this map",
    "area_tree": "only Oracle of Seasons has this map",
    "area_side_view": "Bramble has no side view",
    "shield": "only Oracle of Seasons has shields",
    "seeds": "only Oracle of Seasons has seeds",
    "levers": "only Oracle of Seasons has levers and orbs",
    "torches": "only Oracle of Seasons has torches",
    "cutscene": "Bramble has no scripted scenes",
}


@dataclass
class Walked:
    """A solver's walk: the state after each step, the observations, and what was decoded at each milestone."""

    states: list[GameState] = field(default_factory=list)
    observations: list[np.ndarray] = field(default_factory=list)
    at_milestone: dict[str, GameState] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    texts: set[str] = field(default_factory=set)


@cache
def walk(world: str) -> Walked:
    """The solver's walk through a world."""
    walked = Walked()

    def observe(player: Player, action: int, outcome: Outcome) -> None:
        state = player.state
        walked.states.append(state)
        walked.observations.append(player.features)
        walked.events += events(state) or []
        if state.dialog is not None and state.dialog.line:
            walked.texts.add(state.dialog.line)
        for milestone in player.game.milestones:
            if milestone.name not in walked.at_milestone and milestone.reached(player.image):
                walked.at_milestone[milestone.name] = state

    solve(world, observe)
    return walked


@dataclass(frozen=True)
class Truth:
    """What is so at a milestone of the vale, read off its world file and its walk-through."""

    room: tuple[int, int]
    health: int
    rupees: int
    keys: int | None
    treasures: frozenset[int]
    enemies: int


FILE = frozenset({0x02})  # the bare hand, owned from the start
SWORD = FILE | {0x05}
KITE = SWORD | {0x41}
PLANK = KITE | {0x29}  # a heart was picked up on the way
PURSE = PLANK | {0x28}
KEY = PURSE | {0x30}
GREAT_KEY = KEY | {0x31}
VALE = {
    "child": Truth((0, 0x31), 12, 0, None, FILE, 0),
    "sword": Truth((3, 0x08), 12, 0, None, SWORD, 0),
    "brambles": Truth((0, 0x22), 12, 0, None, SWORD, 2),
    "kite": Truth((0, 0x23), 12, 0, None, KITE, 1),
    "plank": Truth((0, 0x31), 12, 0, None, PLANK, 0),
    "bridge": Truth((0, 0x33), 12, 0, None, PLANK, 0),
    "purse": Truth((0, 0x13), 12, 25, None, PURSE, 0),  # 25 in BCD is 0x25 = 37 if read as binary
    "toll": Truth((0, 0x11), 12, 5, None, PURSE, 0),  # the keeper takes 20
    "mill": Truth((4, 0x71), 12, 5, 0, PURSE, 0),
    "stone": Truth((4, 0x71), 12, 5, 0, PURSE, 0),
    "nest": Truth((4, 0x61), 12, 5, 0, PURSE, 0),
    "small_key": Truth((4, 0x61), 12, 5, 1, KEY, 0),
    "locked_door": Truth((4, 0x51), 12, 5, 0, KEY, 0),  # the key is spent
    "great_key": Truth((4, 0x42), 12, 5, 0, GREAT_KEY, 0),
    "lord": Truth((4, 0x52), 0, 5, 0, GREAT_KEY, 0),
    "ember": Truth((4, 0x53), 0, 5, 0, GREAT_KEY | {0x40}, 0),
}
AFTER_FIGHTS = {"lord", "ember"}  # how much health the last fight costs is not the world's to say


@pytest.mark.parametrize("milestone", VALE)
def test_at_each_milestone_the_decoded_state_is_what_the_world_says(milestone: str) -> None:
    state, truth = walk("vale").at_milestone[milestone], VALE[milestone]
    own = state.inventory

    assert state.key == truth.room
    assert own.rupees == truth.rupees
    assert state.keys == truth.keys
    assert own.treasures == truth.treasures
    assert len(state.enemies) == truth.enemies == state.puzzle.enemies_left
    assert 0 < own.health <= own.max_health == 12
    if milestone not in AFTER_FIGHTS:
        assert own.health == truth.health


@pytest.mark.parametrize("word", ["Oak! Just wha", "A small key!", "Please...", "My kite! You", "A fair price."])
def test_dialogs_are_read_as_text(word: str) -> None:
    assert any(word in text for text in walk("vale").texts)


def test_the_log_of_events_holds_what_the_walk_did() -> None:
    expected = {"item", "solved", "essence", "enemy killed", "rupee", "unlocked", "door", "cut", "pushed", "stairs"}

    assert expected <= set(walk("vale").events)


def test_rows_are_what_the_schema_says() -> None:
    from shared.game.rows import StateRow, line

    for step, state in enumerate(walk("vale").states[::50]):
        row = StateRow.from_bytes(line(state, step, 1).encode())
        assert (row.group, row.room) == state.key


HEALTH, DEATH_TRIGGER = 0xC6A2, 0xCC34


def _lively() -> Iterator[np.ndarray]:
    """Observations of the solver's walks and of random play with all buttons, then of a hurt and a dying hero."""
    worlds = [world for world in ("vale", "realm") if _walkable(world)]
    for world in worlds:
        yield from walk(world).observations
        yield from _wandering(world)


def _wandering(world: str) -> list[np.ndarray]:
    seen: list[np.ndarray] = []
    with playing(EnvConfig(world=world)) as player:
        play(player, 1_500, at_random(3, actions=8), lambda p, action, outcome: seen.append(p.features))
        player.emulator.poke(HEALTH, 2)
        player.step(0)
        seen.append(player.features)
        player.emulator.poke(DEATH_TRIGGER, 0xFF)
        player.step(0)
        return [*seen, player.features]


def _walkable(world: str) -> bool:
    from bramble.solve import ROUTINES

    return world in ROUTINES


# Features of things that only the world `realm` has; alive as soon as it can be walked.
REALM = {
    "airborne", "swimming", "holding", "area_indoors", "season_spring", "season_summer", "season_autumn",
    "season_winter", "max_health", "heart_pieces", "bombs", "feather", "bracelet", "flippers", "season_rod",
    "dungeon_map", "compass", "dialog_choosing", "room_bit_2", "room_bit_7",
}  # fmt: skip


def test_every_feature_varies_or_has_its_reason() -> None:
    observations = np.stack(list(_lively()))
    dead = {
        feature.name
        for feature, values in zip(layout.FEATURES, observations.T, strict=True)
        if values.min() == values.max()
    }
    excused = set(DEAD) if _walkable("realm") else set(DEAD) | REALM

    assert dead <= excused, f"never change and nobody says why: {sorted(dead - excused)}"
    assert set(DEAD) <= dead, f"said to be dead, but alive: {sorted(set(DEAD) - dead)}"


def test_golden_vectors() -> None:
    """Formulas do not change by accident: the layout's version would have to change with them."""
    from tests.unit.game.golden import FILE as GOLDEN
    from tests.unit.game.golden import encode

    with np.load(GOLDEN, allow_pickle=False) as golden:
        for window in range(len(golden["images"])):
            vectors = encode(golden["images"][window], golden["actions"][window])
            np.testing.assert_allclose(vectors, golden["vectors"][window], atol=1e-6)
