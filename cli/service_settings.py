"""Service settings for commands that read the store or the bus directly, without the coordinator."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from pydantic import ValidationError

from cli.client import LOCAL_CONNECTION
from cli.errors import NOT_FOUND, UNREACHABLE, USAGE, CliError
from cli.stack.connections import BUS_PREFIX
from cli.stack.connections import STORE_PREFIX as STORE
from cli.stack.layout import Connection
from shared.config.problems import first_problem
from shared.config.settings import LogSettings, ProcessSettings

S = TypeVar("S", bound=ProcessSettings)
STORE_URL: Final = f"{STORE}URL"
NAMED_BY_USER: Final = {STORE_URL, f"{BUS_PREFIX}URL"}


def load_settings(kind: type[S], new_store: bool = False) -> S:
    """Load settings from `ZELDA_*` variables if they name a store or a bus, else from the local system.

    CliError if they name a directory that does not exist, unless the command may begin a `new_store`.
    """
    log_to_stderr()
    adopt_local_system()
    try:
        settings = kind()
    except ValidationError as error:
        raise CliError(USAGE, f"A ZELDA_* variable is invalid: {first_problem(error)}.") from error
    if not new_store:
        _require_store_directory()
    return settings


def require_store(directory: Path, named_by: str) -> None:
    """CliError if there is no such directory: a store that is opened there would be a new, empty one."""
    if not directory.is_dir():
        raise CliError(NOT_FOUND, f"There is no store in {directory}: check {named_by}.")


def _require_store_directory() -> None:
    scheme, _, directory = os.environ.get(STORE_URL, "").partition("://")
    if scheme == "file":
        require_store(Path(directory), STORE_URL)


def log_to_stderr() -> None:
    """Send warnings of service code to standard error; standard output belongs to the command's data."""
    from shared.telemetry.logging import setup_logging  # slow import: --help does not need it

    setup_logging("zelda", LogSettings(level="warning", format="console"))


def adopt_local_system() -> None:
    """Add the variables of the local system to the environment, unless it names a store or a bus already."""
    if NAMED_BY_USER & os.environ.keys():
        return
    saved = Connection.of_running(LOCAL_CONNECTION)
    if saved is None:
        raise _no_system()
    _adopt(saved.settings)


@contextmanager
def reachable_store() -> Iterator[None]:
    """During the body, the environment names a store: the user's, the running system's, or that of an ended system."""
    if NAMED_BY_USER & os.environ.keys():
        yield
        return
    saved = Connection.of_running(LOCAL_CONNECTION)
    if saved is not None:
        _adopt(saved.settings)
        yield
        return
    from cli.stack.ended_system import ended_system_settings

    with ended_system_settings(LOCAL_CONNECTION.parent) as settings:
        if settings is None:
            raise _no_system()
        before = dict(os.environ)
        _adopt(settings)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _adopt(settings: Mapping[str, str]) -> None:
    """Variables of this call win, except those of store and bus: a mix of two systems would connect to neither."""
    given = {name for name in os.environ if not name.startswith((STORE, BUS_PREFIX))}
    os.environ.update({name: value for name, value in settings.items() if name not in given})


def _no_system() -> CliError:
    return CliError(
        UNREACHABLE,
        "No system runs here: start one with `zelda up`, or set ZELDA_STORE__URL (and ZELDA_BUS__URL) "
        "to reach another one.",
    )
