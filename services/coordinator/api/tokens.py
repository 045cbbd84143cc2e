"""The tokens of the API: a file of `ROLE:TOKEN` lines, read again when it changes. Imports no web framework.

Tokens are stored as digests, compared in constant time, and never logged.
"""

import hmac
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal, get_args

import structlog

from shared.errors import Transient
from shared.telemetry.log_once import LogOnce

Role = Literal["viewer", "operator"]
MIN_LENGTH: Final = 16  # shorter tokens can be guessed over the network
UNUSABLE: Final = "The coordinator cannot use its token file: its operator finds the reason in the log."
"""Any client gets this, so it says nothing about the file."""
log = structlog.get_logger(__name__)


class TokenFile:
    """The tokens of one file.

    While the file is missing or invalid, every request is refused. The previous tokens must not stay valid: an operator
    who removes a stolen token must be able to rely on it, even with an error in another line. Runs need no token and
    continue.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._roles: Mapping[bytes, Role] = {}
        self._problems: LogOnce[Path] = LogOnce(log.error, "token file refused")

    def role(self, token: str) -> Role | None:
        """The role of a token, or None for an unknown one; Transient while the file cannot be used."""
        self._refresh()
        digest = sha256(token.encode()).digest()
        found: Role | None = None
        for known, role in self._roles.items():  # no early exit: the time must not reveal which token matched
            if hmac.compare_digest(known, digest):
                found = role
        return found

    def _refresh(self) -> None:
        try:
            stat = self._path.stat()
            stamp = (stat.st_mtime_ns, stat.st_size)
            if stamp != self._stamp:
                self._roles = parse_tokens(self._path.read_text(encoding="utf-8"))
                self._stamp = stamp
                self._problems.clear(self._path)
        except (OSError, ValueError) as error:
            self._stamp, self._roles = None, {}
            self._problems.report(self._path, error, path=str(self._path))
            raise Transient(UNUSABLE) from error


def parse_tokens(text: str) -> Mapping[bytes, Role]:
    """The role of each token by its digest. Raises ValueError with the invalid line's number, never its text."""
    roles: dict[bytes, Role] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        role, token = (part.strip() for part in line.partition(":")[::2])  # HTTP strips blanks at both ends
        if role not in get_args(Role):
            raise ValueError(f"line {number}: the role must be viewer or operator, as in `viewer:TOKEN`")
        if len(token) < MIN_LENGTH:
            raise ValueError(f"line {number}: the token must have at least {MIN_LENGTH} characters")
        if not (token.isascii() and token.isprintable()):  # HTTP headers cannot carry other characters unchanged
            raise ValueError(f"line {number}: the token must consist of printable ASCII characters")
        roles[sha256(token.encode()).digest()] = "operator" if role == "operator" else "viewer"
    if not roles:
        raise ValueError("the token file has no token: add a line `operator:TOKEN`")
    return roles
