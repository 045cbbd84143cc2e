"""Writes the generated files: RAM header and offsets, tables, schemas. `python -m shared.game.generate [--check]`.

Never edit a generated file: a test compares each with its source.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from shared.game.observation import cells, counters, layout, novelty
from shared.game.ram.table import RamEntry, load_table
from shared.game.recording.state_rows import StateRow

ROOT = Path(__file__).resolve().parents[2]
C_TYPE = {1: "u8", 2: "u16", 4: "u32"}
BIG = 1024  # larger blocks are pointers in C: a definition would make the compiler reserve their addresses

C_HEAD = """\
/* Generated from shared/game/ram/ram.tsv by `python -m shared.game.generate`: do not edit.
 *
 * Work RAM of the game. `RAM_HERE` is set in one C file, which then defines the variables; all others see them as
 * extern. Banked variables (bank 2, 3 or 7) are pointers: select the bank by SVBK (FF70) before use. Bank 1 is the
 * one that is selected all the time.
 */
#pragma once
typedef unsigned char u8;
typedef signed char i8;
typedef unsigned int u16;
typedef unsigned long u32;

#ifdef RAM_HERE
#define RAM(addr, type, name) type __at(addr) name
#define RAMV(addr, type, name, n) type __at(addr) name[n]
#else
#define RAM(addr, type, name) extern type name
#define RAMV(addr, type, name, n) extern type name[n]
#endif

"""

PYTHON_HEAD = '''\
"""Generated from ram.tsv by `python -m shared.game.generate`: do not edit.

Offset of each variable in a RAM image (see shared/game/ram/table.py). Offsets named OBJECT_* are relative to the slot
of an object.
"""

from typing import Final

'''


def _c_variable(entry: RamEntry) -> str:
    """The C line of one variable at a fixed address."""
    at, note = f"0x{entry.address:04X}", f"/* {entry.encoding}; {entry.note} */"
    if entry.bank in ("2", "3", "7") or entry.size >= BIG:
        where = f" bank {entry.bank};" if entry.bank in ("2", "3", "7") else ""
        return f"#define {entry.name} ((u8 *){at}) /*{where} {entry.size} bytes; {entry.note} */"
    scalar = entry.encoding not in ("bytes", "bitset") and entry.size in C_TYPE
    if not scalar:
        return f"RAMV({at}, u8, {entry.name}, {entry.size}); {note}"
    kind = "i8" if entry.encoding == "s8" else C_TYPE[entry.size]
    return f"RAM({at}, {kind}, {entry.name}); {note}"


def _c_object(fields: list[RamEntry]) -> str:
    """The struct of one object slot; bytes without a name become padding."""
    lines, place = ["/* One slot of the object table: 64 bytes. */", "typedef struct {"], 0
    for entry in sorted(fields, key=lambda entry: entry.address):
        if entry.address > place:
            lines.append(f"    u8 pad_{place:02x}[0x{entry.address - place:02X}];")
        kind = "i8" if entry.encoding == "s8" else "u8"
        lines.append(f"    {kind} {entry.name.removeprefix('object_')}; /* {entry.note} */")
        place = entry.address + entry.size
    if place < 0x40:
        lines.append(f"    u8 pad_{place:02x}[0x{0x40 - place:02X}];")
    return "\n".join([*lines, "} Object;", ""])


def ram_h(entries: tuple[RamEntry, ...]) -> str:
    """The C header for the engine of Bramble."""
    fixed = [entry for entry in entries if entry.bank != "slot"]
    slots = [entry for entry in entries if entry.bank == "slot"]
    return C_HEAD + _c_object(slots) + "\n" + "\n".join(map(_c_variable, fixed)) + "\n"


def ram_py(entries: tuple[RamEntry, ...]) -> str:
    """The Python constants."""
    offsets = [f"{entry.name.upper()}: Final = 0x{entry.offset:04X}" for entry in entries]
    return PYTHON_HEAD + "\n".join([*offsets, ""])


def row_schema() -> str:
    """The JSON Schema of a line of states.jsonl."""
    return json.dumps(StateRow.model_json_schema(), indent=2, sort_keys=True) + "\n"


def outputs() -> dict[Path, Callable[[], str]]:
    """Every generated file and the function that makes its text."""
    return {
        ROOT / "bramble/engine/ram.h": lambda: ram_h(load_table()),
        ROOT / "shared/game/ram/offsets.py": lambda: ram_py(load_table()),
        ROOT / "docs/observation.md": lambda: layout.markdown(novelty.VIEWS[novelty.VIEW], tuple(cells.RESOLUTION)),
        ROOT / "docs/counters.md": counters.markdown,
        ROOT / "shared/game/state_row.schema.json": row_schema,
    }


def stale() -> list[Path]:
    """The generated files that differ from what their source gives."""
    return [path for path, make in outputs().items() if not path.exists() or path.read_text("utf-8") != make()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or with `--check` name those that are stale and return 1."""
    parser = argparse.ArgumentParser(prog="python -m shared.game.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is stale")
    check = parser.parse_args(arguments).check
    paths = stale()
    if check:
        for path in paths:
            sys.stderr.write(f"{path.relative_to(ROOT)} is stale: run `python -m shared.game.generate`\n")
        return 1 if paths else 0
    for path in paths:
        path.write_text(outputs()[path](), "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
