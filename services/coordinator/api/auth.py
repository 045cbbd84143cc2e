"""Authentication and authorisation: a bearer token for everything, two roles, deny by default.

The check is a middleware in front of all routes, so a new route is closed until PUBLIC names it. It never logs or
returns a token. It also applies the limits of requests, because they differ between accepted and other requests.
"""

from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from services.coordinator.api.limits import RequestLimits
from services.coordinator.api.problems import problem_response
from services.coordinator.api.tokens import Role, TokenFile
from services.coordinator.live.page_files import page_files
from shared.errors import Transient

READ_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
PUBLIC: Final = frozenset({"/openapi.json", *page_files()})
"""Pages and documents without data of any run. Everything else needs a token.

The health server answers /livez, /readyz and /metrics before this application (`shared/runtime/health.py`).
"""

IS_AUTHORISED: Final = "is_authorised"
"""Key in the ASGI scope: a function that returns whether the token is still valid. Endless responses must call it."""

ROLE: Final = "role"
"""Key in the ASGI scope: the role of the request's token."""


class AuthMiddleware:
    """Requires a known token for all paths except PUBLIC, and an operator's token for every change.

    Requests with an accepted token are limited by token, all others by address.
    """

    def __init__(self, app: ASGIApp, tokens: TokenFile, limits: RequestLimits) -> None:
        self._app, self._tokens, self._limits = app, tokens, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 401, 403, 429, or 503 while the token file is unusable."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] in PUBLIC and scope["method"] in READ_METHODS:
            await (self._limits.of_address(scope) or self._app)(scope, receive, send)
            return
        token, role = _token(scope), None
        try:
            role = self._tokens.role(token) if token else None
            refusal = _refusal(token, role, scope["method"])
        except Transient as error:
            refusal = problem_response(503, str(error), headers={"Retry-After": "2"})
        # The address does not count for an accepted token: others may send from it (`RequestLimits`).
        too_many = self._limits.of_address(scope) if refusal else self._limits.of_token(token)
        allowed = {**scope, IS_AUTHORISED: lambda: self._is_valid(token), ROLE: role}
        await (too_many or refusal or self._app)(allowed, receive, send)

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
