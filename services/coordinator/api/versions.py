"""Whether a client already holds the version that it asks for."""

from typing import Final

from fastapi import Request

WEAK: Final = "W/"


def is_known(request: Request, etag: str) -> bool:
    """Whether `If-None-Match` names this version.

    A weak mark counts as well (RFC 9110, 13.1.2): proxies that compress answers set it.
    """
    sent = [one.strip() for one in request.headers.get("if-none-match", "").split(",")]
    return "*" in sent or etag in (one.removeprefix(WEAK) for one in sent)
