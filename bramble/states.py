"""Emulator states at the milestones of a world, for curricula: made by the walk-through on first use, then cached.

A state fits one ROM and one version of PyBoy only, so both are part of its path. States never enter the repository.
"""

import hashlib
import io
import os
from importlib.metadata import version
from pathlib import Path

import bramble
from bramble.game import Game
from bramble.milestones import reached
from bramble.model import WorldError
from bramble.solve import play

START = "start"


def cache_folder() -> Path:
    """Where states are kept: BRAMBLE_CACHE, else the user's cache folder."""
    named = os.environ.get("BRAMBLE_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return Path(named) if named else base / "bramble"


def _folder(rom: bytes) -> Path:
    return cache_folder() / f"{hashlib.sha256(rom).hexdigest()[:16]}-pyboy{version('pyboy')}"


def _snapshot(game: Game) -> bytes:
    file = io.BytesIO()
    game.pyboy.save_state(file)
    return file.getvalue()


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all, also when two processes write the same state."""
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(data)
    part.replace(path)


def _make(name: str, rom: bytes, folder: Path) -> None:
    """Walk the world through and write a state at its start and whenever a milestone is reached."""
    world = bramble.world(name)
    missing = list(world.milestones)
    folder.mkdir(parents=True, exist_ok=True)

    def observe(game: Game) -> None:
        for milestone in [m for m in missing if reached(m, game.read)]:
            missing.remove(milestone)
            _write(folder / f"{milestone.name}.state", _snapshot(game))

    with Game(rom) as game:
        _write(folder / f"{START}.state", _snapshot(game))
        game.after_step.append(observe)
        play(name, game, world)


def milestone_state(name: str, milestone: str, difficulty: str = "normal", seed: int = 0) -> bytes:
    """PyBoy's state in the step in which a milestone was reached; `start` is the start of the game.

    Raise WorldError for an unknown milestone.
    """
    known = [START, *(m.name for m in bramble.world(name).milestones)]
    if milestone not in known:
        raise WorldError(f"{name} has no milestone {milestone!r}: use one of {', '.join(known)}")
    rom = bramble.build(name, difficulty, seed)
    path = _folder(rom) / f"{milestone}.state"
    if not path.is_file():
        _make(name, rom, path.parent)
    return path.read_bytes()
