"""Builds load.gbc with Debian's sdcc 4.2.0: `python -m bench.load_rom.build`. The built file is committed.

Benchmarks need only the committed file; build after changes to load.c.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ENGINE = HERE.parents[1] / "bramble" / "engine"
ROM = HERE / "load.gbc"
COMPILE = ("sdcc", "-msm83", "--std-c11", "--no-std-crt0", "--nostdlib", "--opt-code-speed", f"-I{ENGINE}")
GLOBAL_CHECKSUM = 0x014E


def build() -> bytes:
    """The ROM's bytes. Raise CalledProcessError if sdcc fails."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)

        def run(*command: str) -> None:
            subprocess.run(command, cwd=work, check=True)

        run("sdasgb", "-o", "start.rel", str(HERE / "start.s"))
        run(*COMPILE, "-c", str(HERE / "load.c"), "-o", "load.rel")
        run(*COMPILE, "--code-loc", "0x200", "--data-loc", "0xC130", "start.rel", "load.rel", "-o", "load.ihx")
        run("makebin", "-Z", "-yC", "-yN", "-yn", "LOAD", "-yo", "2", "load.ihx", "load.gbc")
        rom = bytearray((work / "load.gbc").read_bytes())
    rom[GLOBAL_CHECKSUM : GLOBAL_CHECKSUM + 2] = b"\0\0"
    rom[GLOBAL_CHECKSUM : GLOBAL_CHECKSUM + 2] = (sum(rom) & 0xFFFF).to_bytes(2, "big")
    return bytes(rom)


if __name__ == "__main__":
    ROM.write_bytes(build())
    sys.stdout.write(f"{ROM.name}: {ROM.stat().st_size} bytes\n")
