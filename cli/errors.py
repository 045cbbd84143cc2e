"""Exit codes of `zelda`, and the error that carries one. Scripts rely on the codes: never change them."""

from typing import Final

OK: Final = 0
FAILED: Final = 1  # the command worked, but a run failed or a check found a problem
USAGE: Final = 2  # the command line or a configuration is invalid
UNREACHABLE: Final = 3  # no system answers at the address
DENIED: Final = 4  # the token is missing, unknown or read-only
NOT_FOUND: Final = 5  # no such run, epoch, segment or dead letter
CONFLICT: Final = 6  # the state of the run or the system does not allow it
INTERRUPTED: Final = 130  # ctrl-C

MEANINGS: Final = {
    OK: "success",
    FAILED: "a run failed, or a check found a problem",
    USAGE: "invalid command line or configuration",
    UNREACHABLE: "no system answers",
    DENIED: "the token is missing, unknown or read-only",
    NOT_FOUND: "not found",
    CONFLICT: "conflict with the state of the run or the system",
    INTERRUPTED: "interrupted",
}


INSTALL: Final = "in the repository, run make setup, or pip install -c .ci/constraints.txt -e '.[{}]'"
"""How to install an extra of pyproject.toml. No package index has this project: its name alone installs nothing."""


class CliError(Exception):
    """Ends `zelda` with an exit code. The message is one sentence for the user: what is wrong, where, what to do."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def end_sentence(text: str) -> str:
    """Add the full stop, unless the text ends with a question."""
    return text if text.endswith("?") else f"{text}."
