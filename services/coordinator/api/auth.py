"""Who may do what: a bearer token for everything, two roles, deny by default.

The check is a middleware in front of everything, so a new route is closed until it is named here as public. It never
logs or echoes a token.
"""

from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from services.coordinator.api.problems import problem
from services.coordinator.tokens import Tokens
from shared.errors import Transient

READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
PUBLIC: Final = frozenset(
    {"/", "/hud.js", "/hud.css", "/livez", "/readyz", "/metrics", "/openapi.json", "/docs", "/docs.js"}
)
"""Pages and documents without data of any run. Everything else wants a token."""

ADMITTED: Final = "admitted"
"""In the scope of what was let through: whether its token is still good. An answer that never ends has to ask."""


class Guard:
    """Middleware: a known token for everything but PUBLIC, and the operator's for everything that changes something."""

    def __init__(self, app: ASGIApp, tokens: Tokens) -> None:
        self._app = app
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or answer 401, 403, or 503 while nobody can be known."""
        if scope["type"] != "http" or (scope["path"] in PUBLIC and scope["method"] in READING):
            await self._app(scope, receive, send)
            return
        token = _token(scope)
        refusal = self._refuse(token, scope["method"])
        await (refusal or self._app)({**scope, ADMITTED: lambda: self._admits(token)}, receive, send)

    def _refuse(self, token: str, method: str) -> ASGIApp | None:
        if not token:
            return _unauthorized("This needs a token: send `Authorization: Bearer TOKEN`.")
        try:
            role = self._tokens.role(token)
        except Transient as error:
            return problem(503, str(error), headers={"Retry-After": "2"})
        if role is None:
            return _unauthorized("The token is not known: use one from the coordinator's token file.")
        if method not in READING and role != "operator":
            return problem(403, "This token may only read: use an operator's token to change runs.")
        return None

    def _admits(self, token: str) -> bool:
        try:
            return self._tokens.role(token) is not None
        except Transient:
            return False


def _token(scope: Scope) -> str:
    scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _unauthorized(detail: str) -> ASGIApp:
    return problem(401, detail, headers={"WWW-Authenticate": "Bearer"})
