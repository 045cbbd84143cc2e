"""Service settings for commands that read the store or the bus directly, without the coordinator."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeVar

from pydantic import ValidationError

from cli.client import LOCAL_CONNECTION
from cli.errors import UNREACHABLE, USAGE, CliError
from cli.stack.connections import BUS_PREFIX
from cli.stack.connections import STORE_PREFIX as STORE
from cli.stack.layout import Connection
from shared.config.problems import first_problem
from shared.config.settings import LogSettings, ProcessSettings

S = TypeVar("S", bound=ProcessSettings)
NAMED_BY_USER: Final = {"ZELDA_STORE__URL", "ZELDA_BUS__URL"}


def load_settings(kind: type[S]) -> S:
    """Load settings from `ZELDA_*` variables if they name a store or a bus, else from the local system."""
    log_to_stderr()
    adopt_local_system()
    try:
        return kind()
    except ValidationError as error:
        raise CliError(USAGE, f"A ZELDA_* variable is invalid: {first_problem(error)}.") from error


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
