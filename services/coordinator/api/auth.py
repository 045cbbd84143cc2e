"""Authentication and authorisation: a bearer token for everything, two roles, deny by default.

The check is a middleware in front of all routes, so a new route is closed until PUBLIC names it. It never logs or
returns a token.
"""

from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from services.coordinator.api.problems import problem_response
from services.coordinator.api.tokens import Role, TokenFile
from services.coordinator.live.page_files import page_files
from shared.errors import Transient

READ_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
PUBLIC: Final = frozenset({"/livez", "/readyz", "/metrics", "/openapi.json", *page_files()})
"""Pages and documents without data of any run. Everything else needs a token."""

IS_AUTHORISED: Final = "is_authorised"
"""Key in the ASGI scope: a function that returns whether the token is still valid. Endless responses must call it."""

ROLE: Final = "role"
"""Key in the ASGI scope: the role of the request's token."""


class AuthMiddleware:
    """Requires a known token for all paths except PUBLIC, and an operator's token for every change."""

    def __init__(self, app: ASGIApp, tokens: TokenFile) -> None:
        self._app = app
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 401, 403, or 503 while the token file is unusable."""
        if scope["type"] != "http" or (scope["path"] in PUBLIC and scope["method"] in READ_METHODS):
            await self._app(scope, receive, send)
            return
        token = _token(scope)
        try:
            role = self._tokens.role(token) if token else None
        except Transient as error:
            await problem_response(503, str(error), headers={"Retry-After": "2"})(scope, receive, send)
            return
        allowed = {**scope, IS_AUTHORISED: lambda: self._is_valid(token), ROLE: role}
        await (_refusal(token, role, scope["method"]) or self._app)(allowed, receive, send)

    def _is_valid(self, token: str) -> bool:
        try:
            return self._tokens.role(token) is not None
        except Transient:
            return False


def _refusal(token: str, role: Role | None, method: str) -> ASGIApp | None:
    """The answer to a request that its token does not allow."""
    if not token:
        return _unauthorized("The request has no token: send `Authorization: Bearer TOKEN`.")
    if role is None:
        return _unauthorized("The token is unknown: use one from the coordinator's token file.")
    if method not in READ_METHODS and role != "operator":
        return problem_response(403, "This token can only read: use an operator's token to change runs.")
    return None


def _token(scope: Scope) -> str:
    scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _unauthorized(detail: str) -> ASGIApp:
    return problem_response(401, detail, headers={"WWW-Authenticate": "Bearer"})
