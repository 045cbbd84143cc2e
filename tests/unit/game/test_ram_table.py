"""The RAM table is the only source: generated files follow it, and it agrees with the original's data."""

import subprocess
from pathlib import Path

import pytest

from shared.game import generate
from shared.game.generate import ROOT, outputs
from shared.game.ram import offsets
from shared.game.ram.table import load_table
from tests.required_tools import needs


@pytest.mark.parametrize("path", sorted(outputs()), ids=lambda path: path.name)
def test_generated_file_equals_its_source(path: Path) -> None:
    assert path.read_text("utf-8") == outputs()[path](), "run `python -m shared.game.generate`"


@pytest.mark.parametrize("slip", ["--help", "--chek"])
def test_only_requested_outputs_write_files(slip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "derived"
    monkeypatch.setattr(generate, "outputs", lambda: {file: lambda: "new"})
    with pytest.raises(SystemExit):
        generate.main([slip])
    assert not file.exists()


def test_table_is_large_enough_and_every_row_has_an_offset_constant() -> None:
    table = load_table()

    assert len(table) >= 150
    assert all(getattr(offsets, entry.name.upper()) == entry.offset for entry in table)


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        ("health", 0x06A2),
        ("link_y", 0x100B),  # bank 1, although the address is D00B
        ("text_line", 0x7400),  # bank 7
        ("dungeon_layout", 0x2C00),  # bank 2
        ("rng1", 0x8014),  # high RAM follows the eight banks
        ("object_y", 0x0B),  # within a slot
    ],
)
def test_offset_takes_the_bank_from_the_table(name: str, offset: int) -> None:
    assert {entry.name: entry.offset for entry in load_table()}[name] == offset


def test_row_outside_memory_is_refused_with_file_and_line(tmp_path: Path) -> None:
    table = tmp_path / "ram.tsv"
    table.write_text("head\nfar\thram\t0xFFFE\t2\tu16le\tcore\tbeyond the last byte\n")

    with pytest.raises(ValueError, match=r"ram\.tsv line 2: far at hram:0xFFFE lies outside"):
        load_table(table)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("near\t0\t0xZZ\t1\tu8\tcore\t", "line 2: invalid literal for int"),
        ("near\t0\t0xC000\tone\tu8\tcore\t", "line 2: invalid literal for int"),
        ("near\t9\t0xD000\t1\tu8\tcore\t", "line 2: unknown bank '9', use one of 0, 1, 2, 3, 7, hram, slot"),
        ("near\t0\t0xD00B\t1\tu8\tcore\t", "line 2: near at 0:0xD00B lies outside"),  # bank 1 is meant
        ("near\t1\t0xCC4C\t1\tu8\tcore\t", "line 2: near at 1:0xCC4C lies outside"),
        ("near\thram\t0xC000\t1\tu8\tcore\t", "line 2: near at hram:0xC000 lies outside"),
        ("near\t1\t0xDFFF\t2\tu16le\tcore\t", "line 2: near at 1:0xDFFF lies outside"),
    ],
)
def test_row_with_a_wrong_bank_is_refused(row: str, sentence: str, tmp_path: Path) -> None:
    table = tmp_path / "ram.tsv"
    table.write_text(f"head\n{row}\n")

    with pytest.raises(ValueError, match=rf"ram\.tsv {sentence}"):
        load_table(table)


@needs("sdcc")
def test_header_compiles_with_the_addresses_of_the_table(tmp_path: Path) -> None:
    source = tmp_path / "probe.c"
    source.write_text('#define RAM_HERE\n#include "ram.h"\nvoid probe(void) { health = 3; rupees += 2; }\n')
    command = ["sdcc", "-msm83", "--no-std-crt0", f"-I{ROOT}/bramble/engine", "-S", str(source), "-o", "probe.asm"]

    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)

    assert "_health\t=\t0xc6a2" in (tmp_path / "probe.asm").read_text()
