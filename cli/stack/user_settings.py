"""What a person brings to a local system: a ROM, a judges file, and settings of services from the environment.

Each service gets the variables of its own groups only, because it refuses those that it does not know.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cli.errors import USAGE, CliError
from shared.config.groups import GROUPS

# Beginnings of the variables that a service may be given.
PREFIXES: Final = {
    service: ("ZELDA_LOG__", *(f"ZELDA_{group}__" for group in groups)) for service, groups in GROUPS.items()
}
# The local system has a rules judge and tokens of its own: another judge belongs into a judges file.
RESERVED: Final = ("ZELDA_JUDGE__DEFAULT_URL", "ZELDA_COORDINATOR__TOKENS_FILE")
DRIVER_ROM: Final = "ZELDA_DRIVER__ROM"
EXPORTER_ROM: Final = "ZELDA_ROM__FILE"
JUDGES_FILE: Final = "ZELDA_JUDGES_FILE"


def user_settings(
    environ: Mapping[str, str], rom: Path | None = None, judges: Path | None = None
) -> dict[str, dict[str, str]]:
    """Settings by service; an option wins over the environment. CliError if a file does not fit: nothing runs yet."""
    settings = {
        service: {name: value for name, value in environ.items() if name.startswith(names) and name not in RESERVED}
        for service, names in PREFIXES.items()
    }
    image, file = find_rom(environ, rom), find_judges_file(environ, judges)
    if image is not None:
        settings["trainer"][DRIVER_ROM] = settings["exporter"][EXPORTER_ROM] = str(image)
    if file is not None:
        settings["judge"][JUDGES_FILE] = str(file)
    return settings


def ignored_variables(environ: Mapping[str, str]) -> str | None:
    """A sentence about the `ZELDA_*` variables that reach no service; None if there are none."""
    known = (JUDGES_FILE, *(name for names in PREFIXES.values() for name in names))
    names = sorted(n for n in environ if n.startswith("ZELDA_") and (n in RESERVED or not n.startswith(known)))
    if not names:
        return None
    return f"Not passed on: {', '.join(names)} (a local system sets it itself, or no service knows it)."


def find_rom(environ: Mapping[str, str], rom: Path | None) -> Path | None:
    """The ROM of trainer and exporter alike: the option, or the variable of either. CliError if it is no known game."""
    from shared.game.errors import UnknownRom
    from shared.game.games.oracle import identify_rom

    place, path = _option_or_variable(environ, "--rom", rom, DRIVER_ROM, EXPORTER_ROM)
    if path is None:
        return None
    try:
        identify_rom(path.read_bytes())
    except OSError as error:
        raise CliError(USAGE, f"{place} {path}: {error.strerror}: name the .gbc file of the game.") from error
    except UnknownRom as error:
        raise CliError(USAGE, f"{place} {path}: {error}.") from error
    return path.absolute()


def find_judges_file(environ: Mapping[str, str], judges: Path | None) -> Path | None:
    """The judges file: the option, or the variable. CliError unless it holds judges."""
    place, path = _option_or_variable(environ, "--judges", judges, JUDGES_FILE)
    if path is None:
        return None
    from services.judge.config import ConfigError, load_service_judges

    try:
        load_service_judges(path, "")
    except ConfigError as error:
        raise CliError(USAGE, f"{place} {error}.") from error
    return path.absolute()


def require_rom(game: object, rom: Path | None) -> None:
    """CliError if a run of this game cannot be played, because it needs the person's own ROM."""
    from shared.game.errors import UnknownRom
    from shared.game.games.oracle import ORACLE, oracle_game
    from shared.game.games.registry import GameRequest

    if game != ORACLE or rom is not None:
        return
    try:
        oracle_game(GameRequest())
    except UnknownRom as error:
        raise CliError(USAGE, f"{error}.") from error


def _option_or_variable(
    environ: Mapping[str, str], option: str, value: Path | None, *names: str
) -> tuple[str, Path | None]:
    if value is not None:
        return option, value
    return next(((name, Path(environ[name])) for name in names if environ.get(name)), (option, None))
