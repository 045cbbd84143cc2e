"""Golden observations: windows of a solver's walk as compact RAM images, with the vectors they must give.

`python -m tests.unit.game.golden` writes the file again; do that only together with a new layout version.
"""

from pathlib import Path

import numpy as np

from services.trainer.env.game_session import GameSession, StepResult
from shared.game.decoding.decoder import Decoder
from shared.game.observation.encoder import VectorEncoder
from shared.game.observation.trace import EpisodeTrace
from shared.game.ram import capabilities, offsets
from shared.game.ram.table import BANK_SIZE, HRAM_SIZE, IMAGE_SIZE, WRAM_SIZE
from tests.unit.env.scripted_play import solve

FILE = Path(__file__).with_name("golden_vale.npz")
WINDOW, EVERY = 8, 150
# What the file holds of an image: fixed bank and bank 1, the dungeon's map, the text, high RAM.
PARTS = (
    slice(0, 2 * BANK_SIZE),
    slice(offsets.DUNGEON_LAYOUT, offsets.DUNGEON_LAYOUT + 256),
    slice(offsets.TEXT_PRINT_STATE, offsets.TEXT_LINE + 16),
    slice(WRAM_SIZE, WRAM_SIZE + HRAM_SIZE),
)


def compact(image: bytes) -> bytes:
    """The parts of an image that the file holds."""
    return b"".join(image[part] for part in PARTS)


def expand(parts: bytes) -> bytes:
    """An image with these parts and zeros elsewhere."""
    image = bytearray(IMAGE_SIZE)
    place = 0
    for part in PARTS:
        size = part.stop - part.start
        image[part] = parts[place : place + size]
        place += size
    return bytes(image)


def encode(images: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """The observations of consecutive moments, taken as an episode of their own."""
    decoder, encoder = Decoder(capabilities.BRAMBLE), VectorEncoder(capabilities.BRAMBLE)
    state = decoder.begin(expand(images[0].tobytes()))
    trace = EpisodeTrace(state)
    vectors = [encoder.begin(state, trace)]
    for image, action in zip(images[1:], actions[1:], strict=True):
        state = decoder.decode(expand(image.tobytes()))
        trace.step(state, int(action))
        vectors.append(encoder.step(state, trace))
    return np.stack(vectors)


def main() -> None:
    """Play the vale and keep every 150th stretch of eight steps."""
    moments: list[tuple[bytes, int]] = []

    def observe(session: GameSession, action: int, outcome: StepResult) -> None:
        moments.append((compact(session.image), action))

    solve("vale", observe)
    starts = range(0, len(moments) - WINDOW, EVERY)
    images = np.stack([np.stack([np.frombuffer(moments[at + n][0], np.uint8) for n in range(WINDOW)]) for at in starts])
    actions = np.array([[moments[at + n][1] for n in range(WINDOW)] for at in starts], np.uint8)
    vectors = np.stack([encode(*pair) for pair in zip(images, actions, strict=True)])
    np.savez_compressed(FILE, images=images, actions=actions, vectors=vectors)


if __name__ == "__main__":
    main()
