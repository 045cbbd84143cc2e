"""Along the solver's walk the decoded state matches the game, and every observation feature varies.

The realm's walk takes a minute, so the test of the walk itself is here, too.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import bramble
from bramble.emulator import BrambleEmulator
from bramble.solver.walkthrough import Walkthrough
from bramble.solver.walkthrough import solve as prove
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession, StepResult
from shared.game.decoding.decoder import Decoder
from shared.game.decoding.state import GameState
from shared.game.emulator.snapshot import Memory, open_memory
from shared.game.observation import layout
from shared.game.observation.encoder import VectorEncoder
from shared.game.observation.trace import EpisodeTrace
from shared.game.ram import capabilities
from shared.game.recording.state_rows import events
from studies.episode_length import WALKS
from tests.unit.env.scripted_play import at_random, play, playing, solve

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
    "heart_pieces": "no world of Bramble gives one, though its engine could",
}


@dataclass
class Walked:
    """A solver's walk: the state after each step, the observations, and what was decoded at each milestone."""

    states: list[GameState] = field(default_factory=list)
    observations: list[np.ndarray] = field(default_factory=list)
    at_milestone: dict[str, GameState] = field(default_factory=dict)
    held: dict[str, dict[str, int]] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    texts: set[str] = field(default_factory=set)


@cache
def walk(world: str) -> Walked:
    """The solver's walk through a world."""
    walked = Walked()

    def observe(session: GameSession, action: int, outcome: StepResult) -> None:
        state = session.state
        walked.states.append(state)
        walked.observations.append(session.features)
        walked.events += events(state) or []
        if state.dialog is not None and state.dialog.line:
            walked.texts.add(state.dialog.line)
        for milestone in session.game.milestones:
            if milestone.name not in walked.at_milestone and milestone.reached(session.image):
                walked.at_milestone[milestone.name] = state
                walked.held[milestone.name] = _held(session)

    solve(world, observe)
    return walked


@dataclass(frozen=True)
class Truth:
    """Facts at a milestone of the vale by its world file, independent of drops and fights."""

    room: tuple[int, int]
    keys: int | None
    treasures: frozenset[int]
    purse: int  # least money in hand, counting what the quests give and take


BY_CHANCE = {0x28, 0x29}  # dropped rupees and hearts
BARE = frozenset({0x02})  # the hand, owned from the start
SWORD = BARE | {0x05}
KITE = SWORD | {0x41}
KEY = KITE | {0x30}
GREAT_KEY = KEY | {0x31}
VALE = {
    "child": Truth((0, 0x31), None, BARE, 0),
    "sword": Truth((3, 0x08), None, SWORD, 0),
    "brambles": Truth((0, 0x22), None, SWORD, 0),
    "kite": Truth((0, 0x23), None, KITE, 0),
    "plank": Truth((0, 0x31), None, KITE, 0),
    "bridge": Truth((0, 0x33), None, KITE, 0),
    "purse": Truth((0, 0x13), None, KITE, 25),  # 25 in BCD is the byte 0x25, which is 37 if read as binary
    "toll": Truth((0, 0x11), None, KITE, 5),  # the keeper takes 20
    "mill": Truth((4, 0x71), 0, KITE, 5),
    "stone": Truth((4, 0x71), 0, KITE, 5),
    "nest": Truth((4, 0x61), 0, KITE, 5),
    "small_key": Truth((4, 0x61), 1, KEY, 5),
    "locked_door": Truth((4, 0x51), 0, KEY, 5),  # the key is spent
    "great_key": Truth((4, 0x42), 0, GREAT_KEY, 5),
    "lord": Truth((4, 0x52), 0, GREAT_KEY, 5),
    "ember": Truth((4, 0x53), 0, GREAT_KEY | {0x40}, 5),
}


@pytest.mark.parametrize("milestone", VALE)
def test_decoded_state_at_milestones_matches_the_world(milestone: str) -> None:
    state, truth = walk("vale").at_milestone[milestone], VALE[milestone]
    own = state.inventory

    assert state.key == truth.room
    assert state.keys == truth.keys
    assert own.treasures is not None
    assert own.treasures - BY_CHANCE == truth.treasures
    assert own.rupees is not None
    assert truth.purse <= own.rupees < truth.purse + 30


@pytest.mark.parametrize("milestone", VALE)
def test_decoded_state_at_milestones_equals_the_emulators_memory(milestone: str) -> None:
    """Read byte by byte through PyBoy's own interface, with the addresses of the original's disassembly."""
    state, held = walk("vale").at_milestone[milestone], walk("vale").held[milestone]
    own = state.inventory

    assert own.health == held["health"]
    assert own.max_health == held["max_health"] == 12
    assert own.rupees == int(f"{held['rupees_high']:x}{held['rupees_low']:02x}")
    assert (state.group, state.room, state.x, state.y) == (held["group"], held["room"], held["x"], held["y"])
    assert state.puzzle.enemies_left == held["enemies_left"]
    assert len(state.enemies) == held["enemies"]


def _held(session: GameSession) -> dict[str, int]:
    memory = session.emulator._pyboy.memory
    plain = {
        "health": 0xC6A2, "max_health": 0xC6A3, "rupees_low": 0xC6A5, "rupees_high": 0xC6A6, "group": 0xCC49,
        "room": 0xCC4C, "enemies_left": 0xCC30,
    }  # fmt: skip
    slots = [0xD080 + (n << 8) for n in range(16)]
    return {
        **{name: memory[address] for name, address in plain.items()},
        "x": memory[1, 0xD00D],
        "y": memory[1, 0xD00B],
        "enemies": sum(bool(memory[1, slot] & 1 and memory[1, slot + 0x24] & 0x80) for slot in slots),
    }


def test_the_toll_is_twenty_in_decimal() -> None:
    states = walk("vale").states
    spent = [(before.inventory.rupees or 0) - (after.inventory.rupees or 0) for before, after in pairwise(states)]

    assert max(spent) == 20


@pytest.mark.parametrize("word", ["Oak! Just wha", "A small key!", "Please...", "My kite! You", "A fair price."])
def test_dialogs_are_read_as_text(word: str) -> None:
    assert any(word in text for text in walk("vale").texts)


def test_event_log_contains_the_walks_actions() -> None:
    expected = {"item", "solved", "essence", "enemy killed", "rupee", "unlocked", "door", "cut", "pushed", "stairs"}

    assert expected <= set(walk("vale").events)


def test_rows_match_the_schema() -> None:
    from shared.game.recording.state_rows import StateRow, StateRowWriter

    for step, state in enumerate(walk("vale").states[::50]):
        row = StateRow.from_bytes(StateRowWriter().line(state, step, 1).encode())
        assert (row.group, row.room) == state.key


def test_owned_treasures_are_listed_in_words_for_judges() -> None:
    from shared.game.recording.state_rows import StateRow, StateRowWriter

    ends = (walk("vale").states[0], walk("vale").states[-1])
    first, last = (StateRow.from_bytes(StateRowWriter().line(state, 0, 1).encode()).treasures for state in ends)
    assert first == []
    assert {"sword", "small key", "trade item", "essence"} <= set(last or ())
    assert not [name for name in last or () if name.startswith("treasure")]


HEALTH, DEATH_TRIGGER = 0xC6A2, 0xCC34


def _lively() -> Iterator[np.ndarray]:
    """Observations of the solver's walks and of random play with all buttons, then of a hurt and a dying hero."""
    yield from walk("vale").observations
    yield from proof("realm").observations
    for world in ("vale", "realm"):
        yield from _wandering(world)


@dataclass(frozen=True)
class Proof:
    """A walk to a world's end as its proof has it, and its observations."""

    walk: Walkthrough
    observations: list[np.ndarray]


@cache
def proof(world: str) -> Proof:
    """The proof of a world, with observations made from the RAM of the solver's own emulator."""
    decoder, encoder = Decoder(capabilities.BRAMBLE), VectorEncoder(capabilities.BRAMBLE)
    memories: list[Memory] = []
    traces: list[EpisodeTrace] = []
    seen: list[np.ndarray] = []

    def observe(game: BrambleEmulator) -> None:
        if not memories:
            memories.append(open_memory(game.pyboy))
            state = decoder.begin(memories[0].image())
            traces.append(EpisodeTrace(state))
        else:
            state = decoder.decode(memories[0].image())
            traces[0].step(state, game.actions[-1])
        seen.append(encoder.step(state, traces[0]))

    proved = prove(world, observe=observe)
    assert len(proved.actions) == len(seen) > 10_000
    return Proof(proved, seen)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_solver_reaches_every_milestone_of_the_realm() -> None:
    walked = proof("realm").walk
    assert walked.steps == WALKS["realm"]
    assert list(walked.milestones) == [milestone.name for milestone in bramble.world("realm").milestones]


def _wandering(world: str) -> list[np.ndarray]:
    seen: list[np.ndarray] = []
    with playing(EnvConfig(world=world)) as session:
        play(session, 1_500, at_random(3, actions=8), lambda p, action, outcome: seen.append(p.features))
        session.emulator.poke(HEALTH, 2)
        session.step(0)
        seen.append(session.features)
        session.emulator.poke(DEATH_TRIGGER, 0xFF)
        session.step(0)
        return [*seen, session.features]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_feature_varies_or_has_its_reason() -> None:
    observations = np.stack(list(_lively()))
    dead = {
        feature.name
        for feature, values in zip(layout.FEATURES, observations.T, strict=True)
        if values.min() == values.max()
    }

    assert dead <= set(DEAD), f"never change without a listed reason: {sorted(dead - set(DEAD))}"
    assert set(DEAD) <= dead, f"said to be dead, but alive: {sorted(set(DEAD) - dead)}"


def test_golden_vectors() -> None:
    """Formulas do not change by accident: the layout's version would have to change with them."""
    from tests.unit.game.golden import FILE as GOLDEN
    from tests.unit.game.golden import encode

    with np.load(GOLDEN, allow_pickle=False) as golden:
        for window in range(len(golden["images"])):
            vectors = encode(golden["images"][window], golden["actions"][window])
            np.testing.assert_allclose(vectors, golden["vectors"][window], atol=1e-6)
