"""Entry point of `zelda`: runs a command and turns every expected error into one sentence and an exit code."""

import os
import sys
import traceback
from collections.abc import MutableMapping, Sequence
from errno import EDQUOT, ENOSPC
from io import TextIOWrapper
from pathlib import Path

from cli.console import print_status
from cli.errors import FAILED, INSTALL, INTERRUPTED, OK, UNREACHABLE, USAGE, CliError
from shared.process.exits import flush_and_exit

OWN_PACKAGES = (
    "bramble",
    "cli",
    "services",
    "shared",
    "studies",
)  # a missing module of these is a bug: show its traceback
EXTRAS = {
    "client": ("rich", "typer"),
    "judge": ("PIL", "httpx", "yaml"),
    "coordinator": ("fastapi",),
    "exporter": ("av", "numpy", "pyarrow", "pyboy", "safetensors"),
    "rewardmodel": ("scipy", "torch"),
    "trainer": ("gymnasium", "ray"),
    "cli": ("cryptography", "matplotlib", "minio", "tensorboardX", "urllib3"),
    "llm": ("xllamacpp",),
    "minari": ("minari",),
    "mlflow": ("mlflow",),
    "wandb": ("wandb",),
}
"""By extra of pyproject.toml, the packages that it installs, as they are imported; each at its smallest extra."""

WITH_ALL = "all"  # the extra for a package that this program imports only through others


def main() -> None:
    """Run the command line."""
    prepare_streams()
    bypass_proxies(os.environ)
    flush_and_exit(exit_code_of(sys.argv[1:]) if _has_directory() else USAGE)


def prepare_streams() -> None:
    """Let standard output escape what its encoding lacks, and give closed streams a place.

    Without it, the next file or socket that is opened would be the standard output of this process and its children.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _has_directory() -> bool:
    """Whether the current directory exists, from which paths and imports are resolved."""
    try:
        import_as_here(os.environ, sys.path[0])
    except FileNotFoundError:
        print_status("zelda: The current directory was deleted: change to another one, and try again.")
        return False
    return True


def bypass_proxies(environ: MutableMapping[str, str]) -> None:
    """Exclude this machine from proxies: through a proxy, a local system or a forwarded port would seem to be down."""
    configured = environ.get("no_proxy") or environ.get("NO_PROXY")
    if configured != "*":  # "*" disables every proxy, but only when it is the whole value
        no_proxy = ",".join(name for name in (configured, "127.0.0.1", "localhost") if name)
        environ["no_proxy"] = environ["NO_PROXY"] = no_proxy  # libraries differ in which one they read


def import_as_here(environ: MutableMapping[str, str], first: str) -> None:
    """Let processes import from the user's folder only if this one does (`python -m cli` in a checkout).

    `first` is where this process looks for modules first. A process that is started with `python -m` looks in the
    folder where the user works, and a file there may have the name of a library.
    """
    if Path(first).resolve() != Path.cwd():
        environ["PYTHONSAFEPATH"] = "1"


def exit_code_of(arguments: Sequence[str]) -> int:
    """Run these arguments and return the exit code."""
    try:
        from cli.app import build_command  # within `try`: ctrl-C during a slow import must not show a traceback

        build_command(arguments)(arguments, prog_name="zelda")
    except SystemExit as left:  # click exits this way, also after success
        return left.code if isinstance(left.code, int) else OK
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        end = as_cli_error(error)
        if end is None:
            traceback.print_exc()
            return FAILED
        print_status(f"zelda: {end}")
        return end.code
    return OK


def as_cli_error(error: Exception) -> CliError | None:
    """Return the message and exit code of an expected error; None for a bug, which needs its traceback."""
    from shared.errors import Transient, ZeldaError

    match error:
        case CliError():
            return error
        case Transient():
            return CliError(UNREACHABLE, f"{error}: check the ZELDA_* addresses, and that the system runs.")
        case ZeldaError():
            return CliError(FAILED, str(error))
        case OSError(filename=name, strerror=reason) if name is not None:  # other OSErrors name no file
            return CliError(USAGE, f"{name} cannot be used ({reason}): fix it, or choose another file or directory.")
        case OSError(errno=code) if code in (ENOSPC, EDQUOT):  # an error of a write names no file
            return CliError(
                USAGE, f"A file could not be written ({os.strerror(code)}): free some space, or choose another disk."
            )
        case ModuleNotFoundError(name=str(name)) if name.partition(".")[0] not in OWN_PACKAGES:
            package = name.partition(".")[0]
            install = INSTALL.format(next((extra for extra, names in EXTRAS.items() if package in names), WITH_ALL))
            return CliError(USAGE, f"This command needs the package {package}, which is not installed: {install}.")
        case UnicodeError():
            return CliError(USAGE, f"An argument is not UTF-8 text ({error}): use other characters.")
    return None


if __name__ == "__main__":
    main()
