"""The entry of `zelda`: runs the command and turns every expected trouble into one sentence and an exit code."""

import sys

from cli.app import build
from cli.console import say
from cli.exits import FAILED, INTERRUPTED, Quit


def main() -> None:
    """Run the command line."""
    try:
        build(sys.argv[1:])(prog_name="zelda")
    except Quit as end:
        say(f"zelda: {end}")
        sys.exit(end.code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        from shared.errors import ZeldaError

        if not isinstance(error, ZeldaError):
            raise
        say(f"zelda: {error}")
        sys.exit(FAILED)


if __name__ == "__main__":
    main()
