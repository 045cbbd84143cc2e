"""The ROM is built in milliseconds, reproducible, and contains no third-party material."""

import hashlib
import time
from pathlib import Path

import pytest

import bramble
from bramble.__main__ import main
from bramble.art import loader
from bramble.art.loader import header, load_art
from bramble.engine import compile as engine_compile
from bramble.engine.compile import ENGINE, SDCC_VERSION, BuildError, build_engine, compiler_version
from tests.required_tools import needs

ROM_SIZE = 0x8000
LOGO = slice(0x104, 0x134)
CGB_FLAG, HEADER_CHECKSUM = 0x143, 0x14D


@pytest.mark.parametrize("name", bramble.worlds())
def test_every_world_becomes_a_valid_rom(name: str) -> None:
    rom = bramble.build(name)

    assert len(rom) == ROM_SIZE
    assert rom[CGB_FLAG] == 0xC0
    checksum = 0
    for value in rom[0x134:HEADER_CHECKSUM]:
        checksum = (checksum - value - 1) & 0xFF
    assert rom[HEADER_CHECKSUM] == checksum
    assert int.from_bytes(rom[0x14E:0x150], "big") == (sum(rom) - rom[0x14E] - rom[0x14F]) & 0xFFFF


def test_the_rom_holds_no_logo() -> None:
    assert set(bramble.build("garden")[LOGO]) == {0xFF}


def test_building_takes_milliseconds() -> None:
    bramble.build("vale")
    best = 1.0
    for _ in range(5):
        begin = time.process_time()
        bramble.build("vale")
        best = min(best, time.process_time() - begin)

    assert best < 0.1


def test_equal_arguments_give_equal_roms_and_each_argument_counts() -> None:
    plain = bramble.build("garden")

    assert plain == bramble.build("garden")
    others = [
        bramble.build("garden", seed=1),
        bramble.build("garden", difficulty="harsh"),
        bramble.build("garden", torn=True),
    ]
    assert len({plain, *others}) == 4


def test_an_unknown_world_or_difficulty_is_refused() -> None:
    with pytest.raises(bramble.WorldError, match="there is no world 'nowhere': use one of garden"):
        bramble.build("nowhere")
    with pytest.raises(bramble.WorldError, match="unknown difficulty 'easy', use one of: harmless, normal, harsh"):
        bramble.build("garden", difficulty="easy")


def test_the_committed_engine_matches_its_digest() -> None:
    line = (ENGINE / "engine.gbc.sha256").read_text("ascii").split()

    assert line == [
        hashlib.sha256((ENGINE / "engine.gbc").read_bytes()).hexdigest(),
        "engine.gbc",
        "sdcc",
        SDCC_VERSION,
    ]


@pytest.mark.parametrize("head", ["tile . lawn id=f9", "tile L grass id=f9", "tile L lawn id=00"])
def test_a_tile_with_a_used_letter_name_or_id_is_refused(
    head: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (loader.ART / "tiles.txt").read_text("utf-8")
    (tmp_path / "tiles.txt").write_text(f"{text}\n{head} palette=ground\n" + ("." * 16 + "\n") * 16)
    monkeypatch.setattr(loader, "ART", tmp_path)

    with pytest.raises(ValueError, match=r"tiles\.txt line \d+: another tile has the letter, the name or an id of"):
        loader._tiles()


def test_the_committed_art_header_is_current() -> None:
    assert (ENGINE / "art.h").read_text("utf-8") == header(load_art()), "run `python -m bramble engine`"


@pytest.mark.parametrize(("found", "sentence"), [(None, "is not installed"), ("4.5.0", r"sdcc 4\.5\.0 is installed")])
def test_another_compiler_version_is_refused(found: str | None, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_compile, "compiler_version", lambda: found)
    monkeypatch.setattr(engine_compile, "_compile", lambda *_: b"other bytes")
    with pytest.raises(BuildError, match=sentence):
        build_engine()


@pytest.mark.slow
@pytest.mark.timeout(600)
@needs("sdcc", usable=compiler_version() == SDCC_VERSION, why=f"{SDCC_VERSION} is not installed")
def test_rebuilding_the_engine_gives_the_same_bytes() -> None:
    assert build_engine() == (ENGINE / "engine.gbc").read_bytes()


@pytest.mark.parametrize("command", [["build", "garden", "--out"], ["solve", "garden", "--video"]])
def test_an_unwritable_file_is_reported_in_one_sentence(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nowhere" / "file.mp4"

    assert main([*command, str(path)]) == 1

    assert "No such file or directory" in capsys.readouterr().err
    assert not path.parent.exists()


@pytest.mark.parametrize("command", ["shots", "study"])
def test_commands_without_effect_of_a_seed_refuse_it(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "garden", "--seed", "7"])

    assert "unrecognized arguments: --seed 7" in capsys.readouterr().err
