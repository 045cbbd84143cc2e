"""The entry of `zelda`: runs the command and turns every expected trouble into one sentence and an exit code."""

import sys

from cli.app import build
from cli.console import say
from cli.exits import FAILED, INTERRUPTED, USAGE, Quit


def main() -> None:
    """Run the command line."""
    try:
        build(sys.argv[1:])(prog_name="zelda")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        end = expected(error)
        if end is None:
            raise
        say(f"zelda: {end}")
        sys.exit(end.code)


def expected(error: Exception) -> Quit | None:
    """The sentence and the code for an error that says enough by itself; None for one that needs its traceback."""
    from shared.errors import ZeldaError

    match error:
        case Quit():
            return error
        case ZeldaError():
            return Quit(FAILED, str(error))
        case OSError(filename=name, strerror=reason) if name is not None:  # others have no place to name
            return Quit(USAGE, f"{name} cannot be used ({reason}): name another file or directory, or mend this one.")
        case UnicodeError():
            return Quit(USAGE, f"What was given is not UTF-8 text ({error}): write it with other characters.")
    return None


if __name__ == "__main__":
    main()
