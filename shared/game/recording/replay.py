"""Replays a recorded segment in any process and verifies it against the recording.

Start state, seed, prefix and actions determine the course: the emulator is deterministic. The RAM hashes at the
segment's start and end prove it in every replay.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared.contracts.segment import START_STATE
from shared.errors import ContractError
from shared.game.decoding.decoder import Decoder
from shared.game.decoding.state import GameState
from shared.game.emulator.emulator import EMULATOR, Emulator
from shared.game.emulator.start import begin_episode
from shared.game.errors import EmulatorFault, ReplayMismatch
from shared.game.games.game import Game
from shared.game.recording.segment import Segment

Picture = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """The game after `step` steps of the segment; step 0 is its start."""

    step: int
    state: GameState
    picture: Picture | None


def check_game(segment: Segment, game: Game) -> None:
    """Raise ReplayMismatch if the segment was recorded with another ROM or emulator."""
    manifest = segment.manifest
    if manifest.rom != game.digest:
        raise ReplayMismatch.of_machine("ROM", manifest.rom, game.digest)
    if manifest.emulator != EMULATOR:
        raise ReplayMismatch.of_machine("emulator", manifest.emulator, EMULATOR)


def replay(
    segment: Segment, emulator: Emulator, wants_picture: Callable[[int], bool] | None = None
) -> Iterator[ReplayStep]:
    """Yield every step of the segment; `wants_picture(step)` selects the drawn ones (by default none).

    Raises ReplayMismatch when the RAM differs at the start or, after the last step, at the end; ContractError when the
    start state is invalid.
    """
    check_game(segment, emulator.game)
    manifest = segment.manifest
    skip = manifest.frame_skip
    _begin(segment, emulator)
    drawn = wants_picture or (lambda step: False)
    for step, action in enumerate(segment.prefix, start=1 - len(segment.prefix)):
        emulator.step(int(action), skip, render=step == 0 and drawn(0))
    _compare("start", manifest.ram_start, emulator.ram_hash())
    decoder = Decoder(emulator.game.capabilities)
    yield ReplayStep(0, decoder.begin(emulator.image()), _picture(emulator, drawn(0)))
    for step, action in enumerate(segment.actions, start=1):
        emulator.step(int(action), skip, render=drawn(step))
        image, fresh = emulator.take()
        yield ReplayStep(step, decoder.decode(image, fresh), _picture(emulator, drawn(step)))
    _compare("end", manifest.ram_end, emulator.ram_hash())


def prefix_pictures(segment: Segment, emulator: Emulator) -> Iterator[Picture]:
    """Yield the picture of each step of the episode before the segment: steps that may be in no segment."""
    check_game(segment, emulator.game)
    _begin(segment, emulator)
    for action in segment.prefix[:-1]:  # the last one leads to step 0 of the segment
        emulator.step(int(action), segment.manifest.frame_skip, render=True)
        yield emulator.raw_screen()


def verify(segment: Segment, emulator: Emulator) -> None:
    """Replay without decoding; raise as `replay` does."""
    check_game(segment, emulator.game)
    manifest = segment.manifest
    _begin(segment, emulator)
    for action in segment.prefix:
        emulator.step(int(action), manifest.frame_skip)
    _compare("start", manifest.ram_start, emulator.ram_hash())
    for action in segment.actions:
        emulator.step(int(action), manifest.frame_skip)
    _compare("end", manifest.ram_end, emulator.ram_hash())


def _begin(segment: Segment, emulator: Emulator) -> None:
    """Begin the segment's episode. A state that does not load is a permanent defect of the archive."""
    try:
        begin_episode(emulator, segment.start_state, segment.manifest.seed, segment.manifest.actions)
    except EmulatorFault as fault:
        raise ContractError(f"segment {segment.manifest.segment}: {START_STATE}: {fault}") from fault


def _compare(what: str, expected: str, actual: str) -> None:
    if expected != actual:
        raise ReplayMismatch.of_ram(what, expected, actual)


def _picture(emulator: Emulator, drawn: bool) -> Picture | None:
    return emulator.raw_screen() if drawn else None
