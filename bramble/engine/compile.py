"""Builds the engine from C with sdcc. Only changes to engine/ need it; everything else uses engine/engine.gbc.

The result holds the program without a world: 32 KiB with the program at the start and, at PROGRAM_END, the address
where the program ends and world data may begin. It contains no date and no path: the same sources and compiler give
the same bytes.
"""

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from bramble.art.loader import header, load_art

ENGINE = Path(__file__).parent
SDCC_VERSION = "4.2.0"
SOURCES = (
    "ram",
    "main",
    "video",
    "sprites",
    "hud",
    "text",
    "script",
    "bag",
    "load",
    "rooms",
    "hero",
    "items",
    "objects",
    "enemies",
)
FLAGS = ("-msm83", "--std-c11", "--opt-code-size", "--max-allocs-per-node", "20000", "--no-std-crt0", "--nostdlib")
CODE_START = "0x200"
DATA_START = "0xC110"
PROGRAM_END = 0x00F0
ROM_SIZE = 0x8000


class BuildError(Exception):
    """The engine could not be built: the compiler is missing, has another version, or reported an error."""


def compiler_version() -> str | None:
    """Version of the installed sdcc, such as "4.2.0", or None if sdcc is not installed."""
    path = shutil.which("sdcc")
    if path is None:
        return None
    line = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout  # noqa: S603
    words = line.split()
    return words[words.index("#") - 1] if "#" in words else next((word for word in words if word[0].isdigit()), None)


def _run(*command: str, cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise BuildError(f"{command[0]} failed: {done.stderr.strip() or done.stdout.strip()}")


def _program_end(ihx: str) -> int:
    """First address after the last byte of the program, from the Intel HEX file of the linker."""
    end = 0
    for line in ihx.splitlines():
        count, address, kind = int(line[1:3], 16), int(line[3:7], 16), line[7:9]
        if kind == "00":
            end = max(end, address + count)
    return end


def _compile(work: Path, flags: tuple[str, ...]) -> bytes:
    _run("sdasgb", "-o", "start.rel", "start.s", cwd=work)
    for name in SOURCES:
        _run("sdcc", *flags, "-c", f"{name}.c", "-o", f"{name}.rel", cwd=work)
    objects = ("start.rel", *(f"{name}.rel" for name in SOURCES))
    _run("sdcc", *flags, "--code-loc", CODE_START, "--data-loc", DATA_START, *objects, "-o", "game.ihx", cwd=work)
    _run("makebin", "-Z", "-yC", "-yN", "-yn", "BRAMBLE", "-yo", "2", "game.ihx", "game.gbc", cwd=work)
    rom = bytearray((work / "game.gbc").read_bytes())
    end = _program_end((work / "game.ihx").read_text("ascii"))
    rom[PROGRAM_END : PROGRAM_END + 2] = end.to_bytes(2, "little")
    return bytes(rom)


def build_engine(flags: tuple[str, ...] = FLAGS) -> bytes:
    """Compile engine/ and return the ROM. Raise BuildError with the compiler's output."""
    version = compiler_version()
    if version is None:
        raise BuildError(f"sdcc is not installed: apt install sdcc (Debian 12 has version {SDCC_VERSION})")
    if version != SDCC_VERSION:
        raise BuildError(f"sdcc {version} is installed and gives other bytes: install sdcc {SDCC_VERSION}")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for path in ENGINE.iterdir():
            if path.suffix in (".c", ".h", ".s"):
                shutil.copy(path, work / path.name)
        (work / "art.h").write_text(header(load_art()), "utf-8")
        return _compile(work, flags)


def write_engine() -> str:
    """Build and write engine.gbc, art.h and engine.gbc.sha256. Returns a summary line."""
    rom = build_engine()
    digest = hashlib.sha256(rom).hexdigest()
    (ENGINE / "art.h").write_text(header(load_art()), "utf-8")
    (ENGINE / "engine.gbc").write_bytes(rom)
    (ENGINE / "engine.gbc.sha256").write_text(f"{digest}  engine.gbc  sdcc {compiler_version()}\n", "ascii")
    end = int.from_bytes(rom[PROGRAM_END : PROGRAM_END + 2], "little")
    return f"engine.gbc: {end} bytes of program, sha256 {digest[:16]}"
