"""Exit codes of `zelda`, and the one error that ends it with a sentence. Codes are part of the interface: keep them."""

from typing import Final

OK: Final = 0
FAILED: Final = 1  # the work was done and the answer is bad: a run failed, a check found something
USAGE: Final = 2  # the command line or a configuration is wrong
UNREACHABLE: Final = 3  # no system answers there
DENIED: Final = 4  # the token is missing, unknown, or may only read
NOT_FOUND: Final = 5  # no such run, epoch, segment or letter
CONFLICT: Final = 6  # it does not fit the state that the run or the system is in
INTERRUPTED: Final = 130  # ctrl-C

MEANINGS: Final = {
    OK: "done",
    FAILED: "the run failed, or a check found something",
    USAGE: "wrong command line or configuration",
    UNREACHABLE: "no system answers",
    DENIED: "the token is missing, unknown, or may only read",
    NOT_FOUND: "no such run",
    CONFLICT: "does not fit the state of the run, or of the system",
    INTERRUPTED: "interrupted",
}


class CliError(Exception):
    """Leave with a code; the message is one sentence for the person at the terminal."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
