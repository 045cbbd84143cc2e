"""Copies one object into a file: `python -m shared.store.fetch KEY FILE`. For init containers that fetch a ROM.

The file appears under its name only when it is complete.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from shared.config.configure import read_or_exit
from shared.errors import ZeldaError
from shared.process.exits import flush_and_exit
from shared.store.open import open_store
from shared.store.provision import ProvisionSettings


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m shared.store.fetch", description=__doc__)
    parser.add_argument("key", help="key of the object; its first part is the bucket: models/roms/game.gbc")
    parser.add_argument("file", type=Path, help="destination")
    arguments = parser.parse_args(argv)
    settings = read_or_exit("fetch", ProvisionSettings)
    try:
        data = asyncio.run(open_store(settings.store).get(arguments.key))
        part = arguments.file.with_name(arguments.file.name + ".part")
        part.write_bytes(data)
        part.replace(arguments.file)
    except (ZeldaError, KeyError, ValueError, OSError) as error:
        sys.stderr.write(f"fetch: {error}\n")
        return 1
    sys.stdout.write(f"fetch: {arguments.key} is {arguments.file}, {len(data)} bytes\n")
    return 0


if __name__ == "__main__":
    flush_and_exit(main())  # an init container with a wrong exit code would restart for nothing
