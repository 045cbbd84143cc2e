"""The entry of `zelda`: runs the command and turns every expected trouble into one sentence and an exit code."""

import os
import sys
import traceback
from collections.abc import MutableMapping, Sequence
from errno import EDQUOT, ENOSPC

from cli.app import build_app
from cli.console import print_status
from cli.errors import FAILED, INTERRUPTED, OK, UNREACHABLE, USAGE, CliError
from shared.process.exits import flush_and_exit

OWN_PACKAGES = ("bramble", "cli", "services", "shared", "studies")  # one of these that is missing is our mistake
INSTALL = (
    "in the copy of the repository, pip install -c .ci/constraints.txt -e '.[client,exporter,judge]', or make setup"
)


def main() -> None:
    """Run the command line."""
    bypass_proxies(os.environ)
    flush_and_exit(exit_code_of(sys.argv[1:]))


def bypass_proxies(environ: MutableMapping[str, str]) -> None:
    """Let nothing ask a proxy for this machine: a local system, or a port that is forwarded, would seem to be down."""
    given = environ.get("no_proxy") or environ.get("NO_PROXY")
    if given != "*":  # nothing at all by proxy: only by itself it means that
        here = ",".join(name for name in (given, "127.0.0.1", "localhost") if name)
        environ["no_proxy"] = environ["NO_PROXY"] = here  # some libraries read the one, some the other


def exit_code_of(arguments: Sequence[str]) -> int:
    """Run these words; the exit code."""
    try:
        build_app(arguments)(arguments, prog_name="zelda")
    except SystemExit as left:  # the command line's own way to end, also when all went well
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
    """The sentence and the code for an error that says enough by itself; None for one that needs its traceback."""
    from shared.errors import Transient, ZeldaError

    match error:
        case CliError():
            return error
        case Transient():
            return CliError(UNREACHABLE, f"{error}: are the ZELDA_* addresses right, and is the system up?")
        case ZeldaError():
            return CliError(FAILED, str(error))
        case OSError(filename=name, strerror=reason) if name is not None:  # others have no place to name
            return CliError(
                USAGE, f"{name} cannot be used ({reason}): name another file or directory, or mend this one."
            )
        case OSError(errno=code) if code in (ENOSPC, EDQUOT):  # a write names no file
            return CliError(
                USAGE, f"A file could not be written ({os.strerror(code)}): make room, or name another disk."
            )
        case ModuleNotFoundError(name=str(name)) if name.partition(".")[0] not in OWN_PACKAGES:
            return CliError(USAGE, f"This command needs the package {name}, which is not installed here: {INSTALL}.")
        case UnicodeError():
            return CliError(USAGE, f"What was given is not UTF-8 text ({error}): write it with other characters.")
    return None


if __name__ == "__main__":
    main()
