"""What the user provides to a local stack: a ROM, files of judges and planners, and `ZELDA_*` variables.

Each service receives only the variables of its own groups, because it rejects unknown ones.
"""

import json
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from cli.errors import USAGE, CliError, end_sentence
from shared.config.groups import GROUPS

SHARED: Final = ("ZELDA_LOG__", "ZELDA_TRACING__")
# Prefixes of the variables that each service accepts.
PREFIXES: Final = {service: (*SHARED, *(f"ZELDA_{group}__" for group in groups)) for service, groups in GROUPS.items()}
# The local stack sets these itself: it has its own rules judge, tokens, logs. Other judges belong into a judges file.
RESERVED: Final = ("ZELDA_JUDGE__DEFAULT_URL", "ZELDA_COORDINATOR__TOKENS_FILE", "ZELDA_COORDINATOR__LOGS_DIR")
DRIVER_ROM: Final = "ZELDA_DRIVER__ROM"
EXPORTER_ROM: Final = "ZELDA_ROM__FILE"
GAMES: Final = "ZELDA_COORDINATOR__GAMES"
MAX_ROM_BYTES: Final = 8 << 20
JUDGES_FILE: Final = "ZELDA_JUDGES_FILE"
PLANNER_FILE: Final = "ZELDA_DRIVER__PLANNER_FILE"
START_STATE: Final = "ZELDA_DRIVER__START_STATE"
KEEP_REPLIES: Final = "ZELDA_JUDGE__KEEP_REPLIES"


def user_settings(
    environ: Mapping[str, str],
    rom: Path | None = None,
    judges: Path | None = None,
    *,
    llm: bool = False,
    planner: Path | None = None,
) -> dict[str, dict[str, str]]:
    """Return the settings by service. Options win over the environment; CliError for an unusable file.

    With `llm`, the system writes its own judges file: one of the environment is not read.
    """
    if llm and judges is not None:
        raise CliError(USAGE, "--llm and --judges both choose the judges: use only one of them.")
    settings = {
        service: {name: value for name, value in environ.items() if name.startswith(names) and name not in RESERVED}
        for service, names in PREFIXES.items()
    }
    image = find_rom(environ, rom)
    file = None if llm else find_judges_file(environ, judges)
    if image is not None:
        settings["trainer"][DRIVER_ROM] = settings["exporter"][EXPORTER_ROM] = str(image)
    if (plans := find_planner_file(environ, planner)) is not None:
        settings["trainer"][PLANNER_FILE] = str(plans)
    # The coordinator refuses a run whose game nothing here can open.
    settings["coordinator"].setdefault(GAMES, json.dumps(["bramble", *(["oracle-of-seasons"] if image else [])]))
    if file is not None:
        settings["judge"][JUDGES_FILE] = str(file)
    if llm or file is not None:  # replies of the rules judge repeat its facts
        settings["judge"].setdefault(KEEP_REPLIES, "true")
    return settings


def ignored_variables(environ: Mapping[str, str]) -> str | None:
    """Return a sentence that names the `ZELDA_*` variables that no service receives, or None."""
    known = (JUDGES_FILE, *(name for names in PREFIXES.values() for name in names))
    names = sorted(n for n in environ if n.startswith("ZELDA_") and (n in RESERVED or not n.startswith(known)))
    if not names:
        return None
    return f"Ignored variables: {', '.join(names)} (reserved for the local system, or unknown to every service)."


def find_rom(environ: Mapping[str, str], rom: Path | None) -> Path | None:
    """Find the ROM for trainer and exporter: the option, or the variable of either. CliError for an unknown game."""
    from shared.game.errors import UnknownRom
    from shared.game.games.oracle import identify_rom

    place, path = _option_or_variable(environ, "--rom", rom, DRIVER_ROM, EXPORTER_ROM)
    if path is None:
        return None
    try:
        identify_rom(read_rom(path))
    except OSError as error:
        raise CliError(USAGE, f"{place} {path}: {error.strerror}: name the .gbc file of the game.") from error
    except UnknownRom as error:
        raise CliError(USAGE, f"{place} {path}: {error}.") from error
    return path.absolute()


def read_rom(path: Path) -> bytes:
    """The bytes of a ROM; UnknownRom for what cannot be one: a device, a directory, a huge file. Reads no more."""
    from shared.game.errors import UnknownRom

    if path.is_fifo():  # opening it would wait for a writer
        raise UnknownRom("it is not a ROM image: that is a file, and this is a pipe")
    with path.open("rb") as file:
        size = os.fstat(file.fileno())
        if not stat.S_ISREG(size.st_mode) or size.st_size > MAX_ROM_BYTES:
            raise UnknownRom(f"it is not a ROM image: that is a file of at most {MAX_ROM_BYTES >> 20} MB")
        return file.read(MAX_ROM_BYTES)


def find_judges_file(environ: Mapping[str, str], judges: Path | None) -> Path | None:
    """Find the judges file: the option, or the variable. CliError if it is invalid."""
    from services.judge.config import load_service_judges

    return _loadable(*_option_or_variable(environ, "--judges", judges, JUDGES_FILE), load_service_judges)


def find_planner_file(environ: Mapping[str, str], planner: Path | None) -> Path | None:
    """Find the planner file: the option, or the variable. CliError if it is invalid."""
    from services.trainer.planning.planner_file import load_planner_file

    return _loadable(*_option_or_variable(environ, "--planner", planner, PLANNER_FILE), load_planner_file)


def _loadable(place: str, path: Path | None, load: Callable[[Path, str], object]) -> Path | None:
    from shared.config.yaml_document import ConfigError

    if path is None:
        return None
    if path.is_fifo():
        raise CliError(USAGE, f"{place} {path} is a pipe, and its service reads the file again: name a file.")
    try:
        load(path, "")
    except ConfigError as error:
        raise CliError(USAGE, end_sentence(f"{place} {error}")) from error
    return path.absolute()


def require_rom(game: object, rom: Path | None) -> None:
    """CliError if this game needs a ROM of the user and none is given."""
    from shared.game.errors import UnknownRom
    from shared.game.games.oracle import ORACLE, oracle_game
    from shared.game.games.registry import GameRequest

    if game != ORACLE or rom is not None:
        return
    try:
        oracle_game(GameRequest())
    except UnknownRom as error:
        raise CliError(USAGE, f"{error}.") from error


def find_start_state(environ: Mapping[str, str]) -> Path | None:
    """Find the saved state where play of the user's own game begins: the variable. CliError if it is unreadable."""
    if not environ.get(START_STATE):
        return None
    path = Path(environ[START_STATE])
    try:
        path.open("rb").close()
    except OSError as error:
        raise CliError(USAGE, f"{START_STATE} {path}: {error.strerror}: name a state that PyBoy saved.") from error
    return path.absolute()


def _option_or_variable(
    environ: Mapping[str, str], option: str, value: Path | None, *names: str
) -> tuple[str, Path | None]:
    if value is not None:
        return option, value
    return next(((name, Path(environ[name])) for name in names if environ.get(name)), (option, None))
