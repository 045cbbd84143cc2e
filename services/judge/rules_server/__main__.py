"""Starts the rules judge: `python -m services.judge.rules_server --port 8089`."""

import sys
from contextlib import suppress

import uvicorn
from pydantic import ValidationError

from services.judge.rules_server.app import create_app
from services.judge.rules_server.settings import parse_arguments
from shared.config.problems import first_problem
from shared.runtime.health import listen


def main() -> int:
    """Serve until SIGTERM or ctrl-C."""
    try:
        settings = parse_arguments(sys.argv[1:])
    except ValidationError as error:
        sys.stderr.write(f"rules judge: {first_problem(error)}\n")
        return 2
    try:
        listener = listen(settings.host, settings.port)  # uvicorn's own socket for `::` would refuse IPv4
    except OSError as error:
        sys.stderr.write(f"rules judge: {settings.host} port {settings.port}: {error}\n")
        return 1
    server = uvicorn.Server(uvicorn.Config(create_app(settings), log_level="warning", access_log=False))
    with suppress(KeyboardInterrupt):  # ctrl-C: the server has shut down
        server.run(sockets=[listener])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
