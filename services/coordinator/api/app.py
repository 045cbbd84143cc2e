"""Builds the REST application: routes and pages, behind authentication and limits."""

from typing import Any, Final

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.types import ASGIApp

from services.coordinator.api import problems
from services.coordinator.api.auth import AuthMiddleware
from services.coordinator.api.dead_letter_service import DeadLetterService
from services.coordinator.api.limits import BodySizeLimit, RequestLimits, SecurityHeaders
from services.coordinator.api.routes import (
    dead_letters,
    event_stream,
    gallery,
    log_lines,
    notes,
    now,
    replies,
    report,
    runs,
    segments,
    session,
)
from services.coordinator.api.routes.page import install_page
from services.coordinator.api.run_service import RunService
from services.coordinator.api.tokens import TokenFile
from services.coordinator.live.broadcaster import EventBroadcaster
from services.coordinator.live.live_frames import LiveFrames
from services.coordinator.readmodels.read_models import ReadModels
from services.coordinator.readmodels.service_logs import ServiceLogs

ROUTES: Final = (
    *(runs, notes, report, log_lines, now, segments, gallery, replies),
    *(event_stream, dead_letters, session),
)
TELEMETRY: Final[TelemetryConfig] = {
    "exclude": lambda scope: scope["method"] in ("GET", "HEAD", "OPTIONS"),  # pages ask every second
    "operation_spans": False,
    "metrics": False,
    "logs": False,
    "auto_configure": False,
}
"""A request that changes something is a span of a trace. `shared/telemetry/tracing.py` says where spans go."""
ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": problems.ProblemDetail, "description": text, "content": {"application/problem+json": {}}}
    for status, text in {
        401: "the token is missing or unknown",
        403: "the token can only read, and no logs",
        404: "the run, or what the path names within it, does not exist",
        408: "the body did not arrive in time",
        409: "the command conflicts with the state of the run",
        413: "the body is larger than 64 KB",
        422: "a field is invalid; `detail` names it",
        429: "too many requests",
        500: "a stored object cannot be read; `detail` names it",
        503: "the coordinator, its store or its token file is not available; retry after `Retry-After` seconds",
    }.items()
}


def create_app(
    service: RunService,
    models: ReadModels,
    broadcaster: EventBroadcaster,
    tokens: TokenFile,
    *,
    requests_per_s: float,
    burst: int,
    logs: ServiceLogs | None = None,
) -> ASGIApp:
    """The application behind authentication, the limits of requests and the body limit, in this order.

    `requests_per_s` and `burst` limit each accepted token, and each address of all other requests. `logs` are those of
    a local system; a cluster keeps its own.
    """
    app = FastAPI(
        title="zelda-rlaif",
        version="1",
        description="Start, stop and follow training runs. Every request needs `Authorization: Bearer TOKEN`.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # it would name http:// behind a router with TLS, and so send the token unencrypted
        responses=ERROR_RESPONSES,
        telemetry=TELEMETRY,
    )
    app.state.service, app.state.models, app.state.broadcaster = service, models, broadcaster
    app.state.logs = logs
    app.state.live_frames = LiveFrames(service.store, models.runs)
    app.state.dead_letters = DeadLetterService(service.bus)
    for routes in ROUTES:
        app.include_router(routes.router)
    install_page(app)
    problems.install_error_handlers(app)
    _document_authentication(app)
    return SecurityHeaders(AuthMiddleware(BodySizeLimit(app), tokens, RequestLimits(requests_per_s, burst)))


def _document_authentication(app: FastAPI) -> None:
    """Add the bearer token to the OpenAPI document, so that generated clients send it."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        document = generate()
        schemes = document.setdefault("components", {}).setdefault("securitySchemes", {})
        schemes["token"] = {"type": "http", "scheme": "bearer"}
        document["security"] = [{"token": []}]
        return document

    app.openapi = openapi  # type: ignore[method-assign]
