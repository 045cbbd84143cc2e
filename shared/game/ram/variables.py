"""Reads variables of a RAM image by their name in the table.

The decoder's hot path uses `offsets.py` directly; this module serves tools, tests and rare reads.
"""

from functools import cache

from shared.game.ram.table import BANK_SIZE, HRAM_BASE, WRAM_SIZE, RamEntry, load_table

Value = int | bytes


@cache
def entries() -> dict[str, RamEntry]:
    """The table by name."""
    return {entry.name: entry for entry in load_table()}


def bcd(byte: int) -> int:
    """Two decimal digits in one byte (0-99). A nibble above 9, which no game writes, counts as 9."""
    return min(byte >> 4, 9) * 10 + min(byte & 15, 9)


def read(image: bytes, name: str) -> Value:
    """The decoded value of a variable; `bytes` and `bitset` stay bytes. Raises KeyError for an unknown name."""
    entry = entries()[name]
    raw = image[entry.offset : entry.offset + entry.size]
    if entry.encoding in ("bytes", "bitset"):
        return raw
    if entry.encoding.startswith("bcd"):
        return int("".join(f"{bcd(byte):02d}" for byte in reversed(raw)))
    return int.from_bytes(raw, "little", signed=entry.encoding == "s8")


def read_number(image: bytes, name: str) -> int:
    """As `read`, for a variable that is one number."""
    value = read(image, name)
    if isinstance(value, bytes):
        raise TypeError(f"{name} is {len(value)} bytes, not a number")
    return value


def has_bit(image: bytes, name: str, number: int) -> bool:
    """Bit `number` of a bit set, counted from the lowest bit of the first byte."""
    entry = entries()[name]
    if not 0 <= number < entry.size * 8:
        raise ValueError(f"{name} has {entry.size * 8} bits, so there is no bit {number}")
    return bool(image[entry.offset + (number >> 3)] >> (number & 7) & 1)


def byte_at(image: bytes, address: int, bank: int = 0) -> int:
    """The byte at a CPU address; `bank` is needed for D000-DFFF only."""
    if address >= HRAM_BASE:
        return image[WRAM_SIZE + address - HRAM_BASE]
    return image[bank * BANK_SIZE + (address & (BANK_SIZE - 1))]
