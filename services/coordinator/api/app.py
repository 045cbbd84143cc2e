"""Builds the REST application: routes and pages, behind authentication and limits."""

from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from starlette.responses import Response
from starlette.types import ASGIApp

from services.coordinator.api import event_stream, problems, runs, segments
from services.coordinator.api.auth import AuthMiddleware
from services.coordinator.api.limits import BodySizeLimit, RateLimit
from services.coordinator.api.models import NewRun
from services.coordinator.api.run_service import RunService
from services.coordinator.api.tokens import TokenFile
from services.coordinator.live.broadcaster import EventBroadcaster
from services.coordinator.readmodels.read_models import ReadModels
from shared.contracts.ppo import PpoConfig
from shared.contracts.run import RunConfig, SamplingConfig, ShapingConfig

CONFIGURATION = (
    NewRun,
    RunConfig,
    PpoConfig,
    ShapingConfig,
    SamplingConfig,
)  # their fields are suggested for misspelt ones
PAGES = {
    "/": ("index.html", "text/html"),
    "/hud.js": ("hud.js", "text/javascript"),
    "/hud.css": ("hud.css", "text/css"),
    "/docs": ("docs.html", "text/html"),
    "/docs.js": ("docs.js", "text/javascript"),
}
SECURITY_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:"
"""Scripts and styles load only from this server, so injected markup cannot load foreign code."""

ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": problems.ProblemDetail, "description": text, "content": {"application/problem+json": {}}}
    for status, text in {
        401: "the token is missing or unknown",
        403: "the token can only read",
        404: "the run does not exist",
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
) -> ASGIApp:
    """The application behind the rate limit, authentication and the body limit, in this order."""
    app = FastAPI(
        title="zelda-rlaif",
        version="1",
        description="Start, stop and follow training runs. Every request needs `Authorization: Bearer TOKEN`.",
        docs_url=None,
        redoc_url=None,
        responses=ERROR_RESPONSES,
    )
    app.state.service, app.state.models, app.state.broadcaster = service, models, broadcaster
    for routes in (runs, segments, event_stream):
        app.include_router(routes.router)
    for path, (file, media_type) in PAGES.items():
        app.add_api_route(path, _page(file, media_type), include_in_schema=False)
    problems.install_error_handlers(app, [name for model in CONFIGURATION for name in model.model_fields])
    _document_authentication(app)
    return RateLimit(AuthMiddleware(BodySizeLimit(app), tokens), requests_per_s, burst)


def _page(file: str, media_type: str) -> Any:
    content = (files("services.coordinator.live") / "page" / file).read_bytes()

    async def page() -> Response:
        return Response(content, media_type=media_type, headers={"Content-Security-Policy": SECURITY_POLICY})

    return page


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
