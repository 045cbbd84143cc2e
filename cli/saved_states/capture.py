"""Takes a state out of a recorded segment or a file, and describes it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cli.errors import USAGE, CliError
from services.trainer.games import GAMES
from shared.game.decoding.decoder import Decoder
from shared.game.emulator.emulator import Emulator
from shared.game.emulator.start import WARM_UP
from shared.game.errors import EmulatorFault
from shared.game.games.game import Game
from shared.game.games.registry import GameRequest
from shared.game.recording.replay import replay
from shared.game.recording.segment import Segment

Load = Callable[[Emulator], None]
MAX_STATE_BYTES: Final = 4 << 20  # PyBoy's states have about 190 kB


@dataclass(frozen=True, slots=True)
class CapturedState:
    """A state of the emulator, uncompressed, and what can be seen in it."""

    state: bytes
    rom: str
    place: str
    milestones: int
    picture: NDArray[np.uint32]
    """(144, 160), packed RGBA."""


def at_step(segment: Segment, step: int) -> Load:
    """Play a segment up to a step; 0 is its start."""
    if step > len(segment.actions):
        raise CliError(USAGE, f"--step {step}: the segment has {len(segment.actions)} steps.")

    def load(emulator: Emulator) -> None:
        played = replay(segment, emulator)
        if next(one for one in played if one.step == step).state.control:
            return
        later = next((one.step for one in played if one.state.control), None)
        hint = "choose another segment" if later is None else f"the next step in which he can is {later}"
        raise CliError(USAGE, f"--step {step}: the hero cannot be controlled then (a dialog, or a door): {hint}.")

    return load


def of_file(path: Path) -> Load:
    """Load a state that PyBoy saved."""
    try:
        if path.stat().st_size > MAX_STATE_BYTES:
            raise CliError(USAGE, f"--file {path} is larger than any saved state: name a file that PyBoy saved.")
        data = path.read_bytes()
    except OSError as error:
        raise CliError(USAGE, f"--file {path}: {error.strerror}: name a state that PyBoy saved.") from error

    def load(emulator: Emulator) -> None:
        try:
            emulator.load(data)
        except EmulatorFault as fault:
            raise CliError(USAGE, f"--file {path}: this version of PyBoy did not save it: {fault}.") from fault

    return load


def capture(request: GameRequest, game_name: str, load: Load) -> CapturedState:
    """The state that `load` brings about. CliError if the hero cannot be controlled in it."""
    game = GAMES.open(game_name, request)
    emulator = Emulator(game)
    try:
        load(emulator)
        return _described(game, emulator)
    finally:
        emulator.close()


def picture_of(request: GameRequest, game_name: str, state: bytes) -> NDArray[np.uint32]:
    """What the screen shows a step after this state."""
    emulator = Emulator(GAMES.open(game_name, request))
    try:
        emulator.load(state)
        return _drawn(emulator)
    finally:
        emulator.close()


def _described(game: Game, emulator: Emulator) -> CapturedState:
    state = emulator.save()
    emulator.resume(state)
    image = emulator.image()
    seen = Decoder(game.capabilities).begin(image)
    if not seen.control:
        raise CliError(
            USAGE, "The hero cannot be controlled in this state (a dialog, a door, or a title): choose another moment."
        )
    place = f"{seen.group}:{seen.room:02x}"
    return CapturedState(state, game.digest, place, game.reached(image), _drawn(emulator))


def _drawn(emulator: Emulator) -> NDArray[np.uint32]:
    emulator.step(0, WARM_UP, render=True)
    return emulator.raw_screen()
