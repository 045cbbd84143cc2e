"""The API's tokens: a file of `ROLE:TOKEN` lines, read again when it changes. Imports no web framework.

Tokens are kept and compared as digests, in constant time, and never logged.
"""

import hmac
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal, get_args

import structlog

from shared.errors import Transient

Role = Literal["viewer", "operator"]
MIN_TOKEN: Final = 16  # shorter tokens can be guessed over the network
UNUSABLE: Final = "The coordinator cannot use its token file: whoever runs it finds the reason in its log and mends it."
"""For anybody who asks, so it says nothing about the file."""
log = structlog.get_logger(__name__)


class Tokens:
    """The tokens of a file with one `ROLE:TOKEN` a line. The file is read again when it changes (rotation).

    While the file is missing or wrong, nobody gets in. To go on with the tokens of before would be kinder, but whoever
    takes a stolen token out must be able to rely on it: a slip in another line would keep it good, told only in a log.
    Runs need no token, so they go on meanwhile.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._roles: Mapping[bytes, Role] = {}
        self._trouble = ""  # what is wrong with the file now

    def role(self, token: str) -> Role | None:
        """The role of a token, or None for an unknown one; Transient while the file cannot be used."""
        self._refresh()
        digest = sha256(token.encode()).digest()
        found: Role | None = None
        for known, role in self._roles.items():  # no early exit: the time must not tell how far a guess got
            if hmac.compare_digest(known, digest):
                found = role
        return found

    def _refresh(self) -> None:
        try:
            stat = self._path.stat()
            stamp = (stat.st_mtime_ns, stat.st_size)
            if stamp != self._stamp:
                self._roles = parse_tokens(self._path.read_text(encoding="utf-8"))
                self._stamp, self._trouble = stamp, ""
        except (OSError, ValueError) as error:
            self._stamp, self._roles = None, {}
            self._told(str(error))
            raise Transient(UNUSABLE) from error

    def _told(self, trouble: str) -> None:
        """Say once what is wrong: requests come often."""
        if trouble != self._trouble:
            log.error("token file refused, nobody gets in", path=str(self._path), error=trouble)
        self._trouble = trouble


def parse_tokens(text: str) -> Mapping[bytes, Role]:
    """Digest of each token and its role, or ValueError with the line that is wrong."""
    roles: dict[bytes, Role] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        role, token = (part.strip() for part in line.partition(":")[::2])  # a header cannot hold a blank at either end
        if role not in get_args(Role):
            raise ValueError(f"line {number}: the role must be viewer or operator, as in `viewer:TOKEN`")
        if len(token) < MIN_TOKEN:
            raise ValueError(f"line {number}: the token must have at least {MIN_TOKEN} characters")
        if not (token.isascii() and token.isprintable()):  # no header carries it as it stands here
            raise ValueError(f"line {number}: the token may hold only letters, digits and signs of ASCII")
        roles[sha256(token.encode()).digest()] = "operator" if role == "operator" else "viewer"
    if not roles:
        raise ValueError("the token file holds no token: write one `operator:TOKEN` line")
    return roles
