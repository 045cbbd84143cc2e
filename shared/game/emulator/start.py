"""Begins an episode: load a saved state, then set the game's random generator from the episode's seed.

Training, replay and curricula use these functions, so that a seed means the same everywhere.
"""

from dataclasses import dataclass
from functools import lru_cache

from shared.contracts.run import ActionsName
from shared.errors import Permanent
from shared.game.decoding.decoder import Decoder
from shared.game.emulator.emulator import Emulator
from shared.game.errors import EmulatorFault
from shared.game.games.game import Game

MAX_OPENING_FRAMES = 1200  # frames; a game with a title screen needs a saved state, because no button is pressed
SETTING = "ZELDA_DRIVER__START_STATE"  # for messages: the setting that provides a run's own start
WARM_UP = 2  # frames between a load and the first step: the game sees that no button is held


@dataclass(frozen=True, slots=True)
class StartState:
    """A named place to begin: a curriculum's milestone, or the true start of the game."""

    name: str
    state: bytes
    memory: bytes | None = None
    """What the episode remembers that the state continues (observation/episode_memory.py); None: a new episode."""
    length: int | None = None
    """Steps until an episode from here is truncated; None: the run's `episode_length`."""
    ends_with_death: bool = False
    """An episode from here ends when the hero dies, even in a run whose episodes go on after a death."""
    opening: int = 0
    """An episode from here begins with at most so many random moves, so that actions learnt by heart lead elsewhere."""


def begin_episode(emulator: Emulator, state: bytes, seed: int, actions: ActionsName = "actions/v2") -> None:
    """Load the state and seed the game; after this the course depends on the actions and their version alone."""
    load_episode(emulator, state, actions)
    seed_episode(emulator, seed)


def load_episode(emulator: Emulator, state: bytes, actions: ActionsName) -> None:
    """Load the state of an episode whose actions have this version; no frame passes."""
    emulator.actions = actions
    emulator.load(state)


def seed_episode(emulator: Emulator, seed: int) -> None:
    """Seed the game that was just loaded. Two frames pass; what happens in them belongs to the episode."""
    emulator.seed(seed)
    emulator.warm_up(WARM_UP)


def continue_episode(emulator: Emulator, state: bytes, actions: ActionsName = "actions/v2") -> None:
    """Load the state of a running episode: the course goes on as if the episode had not been left."""
    emulator.actions = actions
    emulator.resume(state)


@lru_cache(maxsize=32)
def true_start(game: Game) -> StartState:
    """The first moment of control after power-on or after `game.start`, as a state; made once per process and game."""
    emulator, decoder = Emulator(game), Decoder(game.capabilities)
    try:
        if game.start is not None:
            _load(emulator, game.start)
        for _ in range(MAX_OPENING_FRAMES):
            if decoder.decode(emulator.image()).control:
                return StartState("start", emulator.save())
            emulator.warm_up(1)
    finally:
        emulator.close()
    since = "power-on" if game.start is None else "its start state"
    raise Permanent(
        f"{game.name} does not give control within {MAX_OPENING_FRAMES} frames of {since}: "
        f"set {SETTING} to a saved state in which the hero can walk"
    )


def _load(emulator: Emulator, state: bytes) -> None:
    try:
        emulator.load(state)
    except EmulatorFault as fault:
        raise Permanent(f"set {SETTING} to a state that this version of PyBoy saved: {fault}") from fault
    emulator.warm_up(WARM_UP)
