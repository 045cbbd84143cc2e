"""Emulator states at the milestones of a world, for curricula. The walk-through makes them on first use.

A state fits only one ROM and one PyBoy version, so both are part of its path. States never enter the repository.
"""

import hashlib
import io
import os
from importlib.metadata import version
from pathlib import Path

from bramble import catalog
from bramble.emulator import BrambleEmulator
from bramble.solver.walkthrough import play
from bramble.worlds.milestones import reached
from bramble.worlds.model import WorldError

START = "start"


def cache_folder() -> Path:
    """Folder of the states: BRAMBLE_CACHE, or `bramble` in the user's cache folder."""
    named = os.environ.get("BRAMBLE_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return Path(named) if named else base / "bramble"


def _folder(rom: bytes) -> Path:
    return cache_folder() / f"{hashlib.sha256(rom).hexdigest()[:16]}-pyboy{version('pyboy')}"


def _snapshot(game: BrambleEmulator) -> bytes:
    file = io.BytesIO()
    game.pyboy.save_state(file)
    return file.getvalue()


def _write(path: Path, data: bytes) -> None:
    """Write atomically, even when two processes write the same state."""
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(data)
    part.replace(path)


def _make(name: str, rom: bytes, folder: Path) -> None:
    """Run the walk-through and write a state at the start and at each milestone."""
    world = catalog.world(name)
    missing = list(world.milestones)
    folder.mkdir(parents=True, exist_ok=True)

    def observe(game: BrambleEmulator) -> None:
        for milestone in [m for m in missing if reached(m, game.read)]:
            missing.remove(milestone)
            _write(folder / f"{milestone.name}.state", _snapshot(game))

    with BrambleEmulator(rom) as game:
        _write(folder / f"{START}.state", _snapshot(game))
        game.after_step.append(observe)
        play(name, game, world)


def milestone_state(name: str, milestone: str, difficulty: str = "normal", seed: int = 0) -> bytes:
    """The PyBoy state of the step that reached a milestone; `start` is the start of the game.

    Raise WorldError for an unknown milestone.
    """
    known = [START, *(m.name for m in catalog.world(name).milestones)]
    if milestone not in known:
        raise WorldError(f"{name} has no milestone {milestone!r}: use one of {', '.join(known)}")
    rom = catalog.build(name, difficulty, seed)
    path = _folder(rom) / f"{milestone}.state"
    if not path.is_file():
        _make(name, rom, path.parent)
    return path.read_bytes()
