"""The RAM table: one row per variable of Oracle of Seasons that Bramble or the environment uses.

`ram.tsv` is the only source of addresses. Everything else is generated from it, so that the game and its reader cannot
drift apart. The rows follow the public disassembly github.com/Stewmath/oracles-disasm.

A memory image ("RAM image") is the bytes of the eight 4 KiB work RAM banks, followed by the 127 bytes of high RAM
from FF80. `RamEntry.offset` is a variable's place in that image, so a banked address never needs the selected bank.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

TABLE_FILE = Path(__file__).with_name("ram.tsv")
BANK_SIZE = 0x1000
WRAM_SIZE = 8 * BANK_SIZE
HRAM_BASE = 0xFF80
HRAM_SIZE = 0x7F
IMAGE_SIZE = WRAM_SIZE + HRAM_SIZE
SLOT_SIZE = 0x40

Encoding = Literal[
    "u8", "s8", "u8_px", "bool", "enum", "bits", "quarter_hearts", "yx_nibbles", "bcd8",
    "u16le", "bcd16le", "u24le", "u32le", "bytes", "bitset",
]  # fmt: skip
ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
# The addresses of each bank. A wrong bank would be read silently at a wrong place.
ADDRESSES: dict[str, range] = {
    "0": range(0xC000, 0xD000),
    **dict.fromkeys(("1", "2", "3", "7"), range(0xD000, 0xE000)),
    "hram": range(HRAM_BASE, HRAM_BASE + HRAM_SIZE),
    "slot": range(SLOT_SIZE),
}


@dataclass(frozen=True, slots=True)
class RamEntry:
    """One variable. `address` is the CPU's address, or for bank `slot` the offset within an object of 64 bytes."""

    name: str
    bank: str
    address: int
    size: int
    encoding: Encoding
    capability: str
    note: str

    @property
    def offset(self) -> int:
        """Place of the first byte in a RAM image, or within an object for bank `slot`."""
        if self.bank == "slot":
            return self.address
        if self.bank == "hram":
            return WRAM_SIZE + self.address - HRAM_BASE
        return int(self.bank) * BANK_SIZE + (self.address & (BANK_SIZE - 1))


def _entry(number: int, line: str) -> RamEntry:
    """Parse one line, or raise ValueError that names file and line."""
    where = f"{TABLE_FILE.name} line {number}"
    cells = line.split("\t")
    if len(cells) != 7:
        raise ValueError(f"{where}: {len(cells)} columns instead of 7, separated by tabs")
    name, bank, address, size, encoding, capability, note = cells
    if encoding not in ENCODINGS:
        raise ValueError(f"{where}: unknown encoding {encoding!r}, use one of {', '.join(ENCODINGS)}")
    if bank not in ADDRESSES:
        raise ValueError(f"{where}: unknown bank {bank!r}, use one of {', '.join(ADDRESSES)}")
    try:
        entry = RamEntry(name, bank, int(address, 16), int(size), encoding, capability, note)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
    addresses = ADDRESSES[bank]
    if entry.address not in addresses or entry.size < 1 or entry.address + entry.size > addresses.stop:
        raise ValueError(f"{where}: {name} at {bank}:{address} lies outside the memory")
    return entry


def load_table(path: Path = TABLE_FILE) -> tuple[RamEntry, ...]:
    """Read the table; names are unique. Raise ValueError with file and line for an invalid row."""
    lines = path.read_text("utf-8").splitlines()
    entries = tuple(_entry(number, line) for number, line in enumerate(lines[1:], start=2))
    names = [entry.name for entry in entries]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"{path.name}: duplicate names: {', '.join(sorted(twice))}")
    return entries
