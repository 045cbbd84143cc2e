"""Runs a Bramble ROM in PyBoy: hold a button for a step, read a byte, take a picture.

One step is four frames with one of the eight actions held, as in the training environment.
"""

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from shared.game.ram.table import RamEntry, load_table

if TYPE_CHECKING:
    import numpy as np

ACTIONS = ("nop", "up", "down", "left", "right", "a", "b", "start")
FRAMES_PER_STEP = 4
BOOT_LIMIT = 600
IN_PLAY = 2
RAM_ENTRIES: dict[str, RamEntry] = {entry.name: entry for entry in load_table()}


class BrambleEmulator:
    """A running game. Use it in a `with` block, or call `close`."""

    def __init__(self, rom: bytes, window: str = "null") -> None:
        with warnings.catch_warnings():
            # pysdl2 warns about the library that it found; players need not see that.
            warnings.filterwarnings("ignore", message="Using SDL2 binaries")
            from pyboy import PyBoy  # a slow import that builders of ROMs do not need

        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name) / "game.gbc"
        path.write_bytes(rom)
        self.pyboy: Any = PyBoy(str(path), window=window, sound_emulated=False, log_level="ERROR")
        if window == "null":
            self.pyboy.set_emulation_speed(0)
        self.frames = 0
        self.steps = 0
        self.held = "nop"
        self.actions: list[int] = []
        self.after_step: list[Callable[[BrambleEmulator], None]] = []
        self.render = False
        self._boot()

    def _boot(self) -> None:
        for _ in range(BOOT_LIMIT):
            self.pyboy.tick(1, False)
            if self.value("game_state") == IN_PLAY and self.value("scroll_mode") == 1:
                return
        raise RuntimeError(f"the game did not start within {BOOT_LIMIT} frames")

    def __enter__(self) -> "BrambleEmulator":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the emulator and remove its files."""
        self.pyboy.stop(save=False)
        self._folder.cleanup()

    def step(self, action: str) -> None:
        """Hold one of ACTIONS for four frames."""
        if action != self.held:
            if self.held != "nop":
                self.pyboy.button_release(self.held)
            if action != "nop":
                self.pyboy.button_press(action)
            self.held = action
        self.pyboy.tick(FRAMES_PER_STEP, self.render)
        self.frames += FRAMES_PER_STEP
        self.steps += 1
        self.actions.append(ACTIONS.index(action))
        for observe in self.after_step:
            observe(self)

    def read(self, address: int, bank: int = 0) -> int:
        """One byte. The bank applies to D000-DFFF, where 0 means bank 1."""
        if 0xD000 <= address < 0xE000:
            return int(self.pyboy.memory[bank or 1, address])
        return int(self.pyboy.memory[address])

    def value(self, name: str, offset: int = 0) -> int:
        """One byte of a variable of shared/game/ram/ram.tsv."""
        entry = RAM_ENTRIES[name]
        return self.read(entry.address + offset, int(entry.bank) if entry.bank.isdigit() else 0)

    def write(self, name: str, value: int, offset: int = 0) -> None:
        """Write one byte of a variable that is not banked."""
        self.pyboy.memory[RAM_ENTRIES[name].address + offset] = value

    def decimal(self, name: str) -> int:
        """A two-byte decimal such as `rupees`."""
        low, high = self.value(name), self.value(name, 1)
        return (high >> 4) * 1000 + (high & 15) * 100 + (low >> 4) * 10 + (low & 15)

    def picture(self) -> "np.ndarray[Any, Any]":
        """The last drawn screen: uint8, 144 x 160 x 3. Set `render` before the step."""
        import numpy as np

        return np.array(self.pyboy.screen.ndarray[:, :, :3], copy=True)

    def ram(self) -> bytes:
        """Work RAM (C000-CFFF and bank 1) and high RAM, the input of state hashes."""
        memory = self.pyboy.memory
        low, high = bytes(memory[0xC000:0xD000]), bytes(memory[1, 0xD000:0xDFFF])
        return low + high + bytes(memory[0xFF80:0xFFFF])
