"""Starts the rules judge: `python -m services.judge.rules_server --port 8089`."""

import sys

import uvicorn
from pydantic import ValidationError

from services.judge.rules_server.app import create_app
from services.judge.rules_server.settings import parse_arguments
from shared.config.problems import first_problem


def main() -> int:
    """Serve until SIGTERM or ctrl-C."""
    try:
        settings = parse_arguments(sys.argv[1:])
    except ValidationError as error:
        sys.stderr.write(f"rules judge: {first_problem(error)}\n")
        return 2
    uvicorn.run(create_app(settings), host=settings.host, port=settings.port, log_level="warning", access_log=False)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
