"""The emulator: one running game, controlled by buttons, observed through RAM images. Only this module imports PyBoy.

It renders only on request. Equal start, seed and buttons give equal RAM, in any process, with or without rendering. It
writes no files: ROM images and saves stay in memory.
"""

import hashlib
import io
import warnings
from importlib.metadata import version
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from shared.contracts.run import ActionsName
from shared.game.decoding.names import BUTTON_OF_ACTION
from shared.game.emulator.snapshot import VBlankSnapshots, open_memory
from shared.game.errors import EmulatorFault
from shared.game.games.game import Game
from shared.game.ram.table import HRAM_BASE, WRAM_SIZE

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PySDL2 announces its binaries on import
    from pyboy import PyBoy

EMULATOR: Final = f"pyboy {version('pyboy')}"
RNG_WORD: Final = 0xFF94
COLOUR_HARDWARE: Final = 1
TAPPED: Final = frozenset({"a", "b", "start"})
MAX_BOOT_FRAMES: Final = 600  # frames; ten seconds of play
HARDWARE_AT: Final = 0xFF96

Frame = NDArray[np.uint8]


class Emulator:
    """One game in memory. Not thread-safe, but two instances may run in two threads: `step` releases the GIL."""

    def __init__(self, game: Game, window: str = "null") -> None:
        """Start the game. `window` "SDL2" shows it at its own speed, with the keyboard as its buttons."""
        self.game = game
        sound = game.needs_sound  # some scripts of commercial games wait for the sound hardware
        self._pyboy: Any = PyBoy(
            io.BytesIO(game.rom),
            ram_file=None,
            window=window,
            cgb=True,
            sound_emulated=sound,
            sound_volume=0,
            log_level="CRITICAL",
        )
        self._pyboy.set_emulation_speed(0 if window == "null" else 1)
        self._memory = open_memory(self._pyboy)
        self._snapshots = VBlankSnapshots(self._pyboy, self._memory) if game.updates_after_vblank else None
        self._held: str | None = None
        self.actions: ActionsName = "actions/v2"
        self.frames = 0
        self._boot()

    def step(self, action: int, frames: int, render: bool = False) -> None:
        """Press the action's button for `frames` emulator frames; `render` draws the last of them.

        By actions/v2, A, B and START are released in the second half of the frames: games act on the edge of a press,
        and the same action in the next step is another press. Directions stay held; in actions/v1 every button does.
        """
        button = BUTTON_OF_ACTION[action]
        pressed = frames - frames // 2 if button in TAPPED and self.actions == "actions/v2" else frames
        try:
            self._hold(button)
            running = self._pyboy.tick(pressed, render and pressed == frames, False)
            if running and pressed < frames:
                self._hold(None)
                running = self._pyboy.tick(frames - pressed, render, False)
        except Exception as error:  # a compiled emulator may raise anything; callers see one kind of fault
            raise EmulatorFault(f"the emulator failed after {self.frames} frames: {error}") from error
        if not running:
            raise EmulatorFault(f"the emulator stopped after {self.frames} frames")
        self.frames += frames

    def _hold(self, button: str | None) -> None:
        """Let go of the button that is held, if it is another one, and press this one."""
        if button == self._held:
            return
        if self._held is not None:
            self._pyboy.button_release(self._held)
        if button is not None:
            self._pyboy.button_press(button)
        self._held = button

    def image(self) -> bytes:
        """The RAM image to decode: the current one if the game is at rest now, else the last one at rest."""
        return self.take()[0]

    def take(self) -> tuple[bytes, bool]:
        """As `image`, and whether the game was at rest in it; call it once per step."""
        if self._snapshots is None:
            return self._memory.image(), True
        return self._snapshots.take()

    def naive_image(self) -> bytes:
        """The current RAM, possibly in the middle of the game's update."""
        return self._memory.image()

    def ram_hash(self) -> str:
        """SHA-256 of the current work RAM and high RAM; recordings and replays compare it."""
        return hashlib.sha256(self._memory.image()).hexdigest()

    def screen(self) -> Frame:
        """The last rendered picture, uint8 (144, 160, 3), as a copy."""
        return np.ascontiguousarray(self._pyboy.screen.ndarray[:, :, :3])

    def raw_screen(self) -> NDArray[np.uint32]:
        """The last rendered picture as packed little-endian RGBA, uint32 (144, 160); as a cheap copy."""
        packed: NDArray[np.uint32] = self._pyboy.screen.ndarray.view(np.uint32)[:, :, 0].copy()
        return packed

    def save(self) -> bytes:
        """The whole state of the emulator (about 186 kB, 12 ms)."""
        buffer = io.BytesIO()
        self._pyboy.save_state(buffer)
        return buffer.getvalue()

    def load(self, state: bytes) -> None:
        """Return to a saved state; held buttons are released. EmulatorFault if the state is invalid."""
        try:
            self._pyboy.load_state(io.BytesIO(state))
        except Exception as error:
            raise EmulatorFault(f"a saved state of {len(state)} bytes does not load: {error}") from error
        self._release()
        if self._snapshots is not None:
            self._snapshots.forget()

    def resume(self, state: bytes) -> None:
        """As `load`, for a running episode that goes on: `take` then gives an image at rest, and no frame has passed.

        A state holds no image at rest. It is that of the frame after the state, from which the emulator returns.
        """
        self.load(state)
        if self._snapshots is not None:
            self._snapshots.settle()
            image, at_rest = self._snapshots.take()
            self.load(state)
            if at_rest:
                self._snapshots.keep(image)

    def seed(self, word: int) -> None:
        """Set the game's random generator: 16 bits, never 0, because 0 is a fixed point in both games."""
        word = word & 0xFFFF or 0x370D
        self.poke(RNG_WORD, word & 0xFF)
        self.poke(RNG_WORD + 1, word >> 8)

    def poke(self, address: int, value: int, bank: int = 0) -> None:
        """Write one byte; `bank` for D000-DFFF. For seeding, tests and curricula, never during an episode."""
        if bank:
            self._pyboy.memory[bank, address] = value
        else:
            self._pyboy.memory[address] = value
        if self._snapshots is not None:
            self._snapshots.forget()

    def warm_up(self, frames: int) -> None:
        """Let the game run without buttons and uncounted.

        The frames are rendered: the renderer keeps parts of earlier pictures, which the first one would otherwise show.
        """
        for _ in range(frames):
            self._pyboy.tick(1, True, False)
        if self._snapshots is not None:
            self._snapshots.settle()

    def close(self) -> None:
        """End the game without writing a save file."""
        self._pyboy.stop(save=False)

    def _boot(self) -> None:
        """Run until the game is ready to be driven."""
        if self.game.boot_frames:
            self._pyboy.tick(self.game.boot_frames, False, False)
        if self.game.checks_hardware:
            self._await_hardware()
        if self._snapshots is not None:
            self._snapshots.learn()

    def _await_hardware(self) -> None:
        """Run until the game has detected its hardware; EmulatorFault unless that is colour hardware."""
        hardware = 0
        for _ in range(MAX_BOOT_FRAMES):
            hardware = self._memory.image()[WRAM_SIZE + HARDWARE_AT - HRAM_BASE]
            if hardware == COLOUR_HARDWARE:
                return
            self._pyboy.tick(1, False, False)
        raise EmulatorFault(f"the game detected hardware type {hardware}; it must be colour hardware (1)")

    def _release(self) -> None:
        """Release every button. A state may have been saved with one pressed."""
        for button in BUTTON_OF_ACTION[1:]:
            self._pyboy.button_release(button)
        self._pyboy.button_release("select")
        self._held = None
        self.frames = 0
        if self._snapshots is not None:
            self._snapshots.forget()
