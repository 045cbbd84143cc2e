"""Reads the work RAM of a running PyBoy as bytes, without a Python call per byte, while the game is at rest.

PyBoy offers its memory byte by byte (8 KiB cost 134 us). The same bytes lie in one C buffer of its RAM object; its
address is found through the layout of that compiled class, which is checked against the official interface before
it is used. If the check fails, the official interface is used: slower, but always correct.
"""

import ctypes
import gc
from collections import Counter
from typing import Any, Final, Protocol

from shared.game.ram.table import BANK_SIZE, HRAM_BASE, HRAM_SIZE, WRAM_SIZE

# Layout of pyboy.core.ram.RAM: object head and method table (24 bytes), a memoryview slice for work RAM (208 bytes),
# 0x60 bytes of unusable memory, 0x4C I/O bytes, 0x7F bytes of high RAM.
_SLICE_AT: Final = 24
_DATA_AT, _LENGTH_AT = _SLICE_AT + 8, _SLICE_AT + 16
_HRAM_AT: Final = _SLICE_AT + 208 + 0x60 + 0x4C
CALIBRATION: Final = 120  # frames observed to learn where the game waits; with too few, another address could win
VBLANK_VECTOR: Final = 0x40


class Memory(Protocol):
    """Reads the current RAM image."""

    def image(self) -> bytes:
        """Eight banks of work RAM and high RAM, see table.py."""
        ...


class DirectMemory:
    """Copies the emulator's own buffers: 0.4 us for an image."""

    def __init__(self, pyboy: Any) -> None:
        """Raise LookupError if the buffers are not at the expected place of this PyBoy version."""
        ram = _find(_find(pyboy, "Motherboard"), "RAM")
        if ctypes.c_ssize_t.from_address(id(ram) + _LENGTH_AT).value != WRAM_SIZE:
            raise LookupError("the emulator's RAM is not at the expected place")
        data = ctypes.c_void_p.from_address(id(ram) + _DATA_AT).value or 0
        self._owner = ram  # the buffers live as long as this object
        self._wram = memoryview((ctypes.c_uint8 * WRAM_SIZE).from_address(data)).cast("B")
        self._hram = memoryview((ctypes.c_uint8 * HRAM_SIZE).from_address(id(ram) + _HRAM_AT)).cast("B")

    def image(self) -> bytes:
        """The current RAM image."""
        return b"".join((self._wram, self._hram))


class OfficialMemory:
    """The same through PyBoy's interface: exact, but a hundred times slower."""

    def __init__(self, pyboy: Any) -> None:
        self._memory = pyboy.memory

    def image(self) -> bytes:
        """The current RAM image."""
        memory = self._memory
        banks = [bytes(memory[0xC000:0xD000])]
        for bank in range(1, WRAM_SIZE // BANK_SIZE):
            # PyBoy refuses a slice that ends at the bank's end, so the last byte is read on its own.
            banks.append(bytes(memory[bank, 0xD000:0xDFFF]) + bytes([memory[bank, 0xDFFF]]))
        return b"".join(banks) + bytes(memory[HRAM_BASE : HRAM_BASE + HRAM_SIZE])


def open_memory(pyboy: Any) -> Memory:
    """Direct memory if it gives the bytes of the official interface, else the official interface."""
    official = OfficialMemory(pyboy)
    try:
        direct = DirectMemory(pyboy)
    except LookupError:
        return official
    return direct if direct.image() == official.image() else official


def _find(holder: Any, kind: str) -> Any:
    for item in gc.get_referents(holder):
        if type(item).__name__ == kind:
            return item
    raise LookupError(f"no {kind} in {type(holder).__name__}")


class VBlankSnapshots:
    """RAM images taken when a vertical blank interrupts the waiting game, for games that update after it.

    Such a game is in the middle of an update whenever `tick` returns. The interrupt finds it waiting at a fixed
    address, except when an update took longer than a frame; those interrupts are skipped.
    """

    def __init__(self, pyboy: Any, memory: Memory) -> None:
        """Register the hook; call `learn` once the game runs."""
        self._pyboy, self._memory = pyboy, memory
        self._seen: Counter[int] | None = None
        self._waits_at: int | None = None
        self._image: bytes | None = None
        pyboy.hook_register(0, VBLANK_VECTOR, self._on_vblank, None)

    def learn(self) -> None:
        """Observe the running game for `CALIBRATION` frames and learn where it waits."""
        self._seen = Counter()
        self._pyboy.tick(CALIBRATION, False, False)
        counts, self._seen = self._seen, None
        self._waits_at = counts.most_common(1)[0][0] if counts else None

    def settle(self) -> None:
        """Run whole frames until an image at rest exists: the first image after a load must be at rest."""
        for _ in range(CALIBRATION):
            if self._image is not None:
                return
            self._pyboy.tick(1, False, False)

    def forget(self) -> None:
        """Discard the image: the game was changed from outside."""
        self._image = None

    def keep(self, image: bytes) -> None:
        """Let the next `take` give this image, which was taken at rest."""
        self._image = image

    def take(self) -> tuple[bytes, bool]:
        """The last image at rest since the last call and True; without one, the current bytes and False."""
        image, self._image = self._image, None
        return (image, True) if image is not None else (self._memory.image(), False)

    def _on_vblank(self, _context: object) -> None:
        stack = self._pyboy.register_file.SP
        memory = self._pyboy.memory
        came_from = memory[stack] | memory[stack + 1] << 8
        if self._seen is not None:
            self._seen[came_from] += 1
        elif came_from == self._waits_at:
            self._image = self._memory.image()
