"""Puts the REST interface together: routes, documents, and in front of them limits and guard."""

from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from starlette.responses import Response
from starlette.types import ASGIApp

from services.coordinator.api import events, problems, records, runs
from services.coordinator.api.auth import Guard
from services.coordinator.api.desk import Desk
from services.coordinator.api.limits import BodyLimit, RateLimit
from services.coordinator.api.models import NewRun
from services.coordinator.tokens import Tokens
from shared.contracts.run import RunConfig, SamplingConfig, ShapingConfig

PAGES = {
    "/": ("index.html", "text/html"),
    "/hud.js": ("hud.js", "text/javascript"),
    "/hud.css": ("hud.css", "text/css"),
    "/docs": ("docs.html", "text/html"),
    "/docs.js": ("docs.js", "text/javascript"),
}
# Scripts and styles only from here: no page of ours can be made to load anybody else's.
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:"
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": problems.Problem, "description": text, "content": {"application/problem+json": {}}}
    for status, text in {
        401: "no token, or one that is not known",
        403: "the token may only read",
        404: "no such run",
        409: "does not fit the run's state",
        413: "the body is larger than 64 KB",
        422: "a field is wrong; the sentence names it",
        429: "too many requests",
        500: "what is stored cannot be read; the sentence names the object",
        503: "the coordinator starts, or its store or token file is away; try again after `Retry-After` seconds",
    }.items()
}


def create_app(desk: Desk, tokens: Tokens, *, requests_per_s: float, burst: int) -> ASGIApp:
    """The application with everything in front of it that keeps strangers and accidents out."""
    app = FastAPI(
        title="zelda-rlaif",
        version="1",
        description="Runs of reinforcement learning from AI feedback. Send `Authorization: Bearer TOKEN`.",
        docs_url=None,
        redoc_url=None,
        responses=REFUSALS,
    )
    app.state.desk = desk
    for routes in (runs, records, events):
        app.include_router(routes.router)
    for path, (file, kind) in PAGES.items():
        app.add_api_route(path, _page(file, kind), include_in_schema=False)
    names = [name for model in (NewRun, RunConfig, ShapingConfig, SamplingConfig) for name in model.model_fields]
    problems.install(app, names)
    _secure_schema(app)
    return RateLimit(Guard(BodyLimit(app), tokens), requests_per_s, burst)


def _page(file: str, kind: str) -> Any:
    content = (files("services.coordinator") / "hud" / file).read_bytes()

    async def page() -> Response:
        return Response(content, media_type=kind, headers={"Content-Security-Policy": POLICY})

    return page


def _secure_schema(app: FastAPI) -> None:
    """Say in the OpenAPI document what the guard does, so that generated clients send a token."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        document = made()
        schemes = document.setdefault("components", {}).setdefault("securitySchemes", {})
        schemes["token"] = {"type": "http", "scheme": "bearer"}
        document["security"] = [{"token": []}]
        return document

    app.openapi = openapi  # type: ignore[method-assign]
