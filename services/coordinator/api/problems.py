"""Errors of the API as problem documents (RFC 9457). `detail` is one sentence: what is wrong, where, what to do."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import compile_path

from services.coordinator.api.dead_letter_service import ReplayRefused
from services.coordinator.api.run_defaults import UnsuitableRun
from services.coordinator.domain.lifecycle import RunBusy, RunConflict
from shared.bus.port import UnknownDeadLetter
from shared.config.problems import OBJECT_EXPECTED, describe_problem
from shared.errors import Permanent, Transient
from shared.state.deleted_runs import RunDeleted
from shared.store.port import NotFound

log = structlog.get_logger(__name__)
SOURCES: Final = ("body", "query", "path", "header")  # where FastAPI found a value


class ProblemDetail(BaseModel):
    """The body of every error response (RFC 9457)."""

    type: str = "about:blank"
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["There is no run 'demo': see GET /runs."])


class OperatorsOnly(Permanent):
    """A viewer asked for something that only operators may read."""


def problem_response(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An error response."""
    body = ProblemDetail(title=HTTPStatus(status).phrase, status=status, detail=detail)
    return JSONResponse(body.model_dump(), status, headers, media_type="application/problem+json")


def install_error_handlers(app: FastAPI) -> None:
    """Map each error type to its status."""

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        first = error.errors()[0] if isinstance(error, RequestValidationError) else {}
        return problem_response(422, validation_sentence(first, _body_model(request)))

    async def http(request: Request, error: Exception) -> JSONResponse:
        status = error.status_code if isinstance(error, HTTPException) else 500
        if status == HTTPStatus.BAD_REQUEST:  # from FastAPI when the parser fails on encoding, depth or a number
            return problem_response(422, "The body is unreadable: send a JSON object in UTF-8.")
        detail = error.detail if isinstance(error, HTTPException) else "Internal error."
        headers = dict(error.headers or {}) if isinstance(error, HTTPException) else None
        if status == HTTPStatus.METHOD_NOT_ALLOWED:  # the framework names the methods of one route of the path only
            headers = {"Allow": ", ".join(sorted(_methods(app, request.url.path) or {"GET"}))}
        if not detail.endswith("."):
            detail = f"{detail}: see /docs for the available routes."
        return problem_response(status, detail, headers)

    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(OperatorsOnly, _handler(403))
    app.add_exception_handler(RunConflict, _handler(409))
    app.add_exception_handler(RunDeleted, _handler(409))
    app.add_exception_handler(ReplayRefused, _handler(409))
    app.add_exception_handler(UnknownDeadLetter, _handler(404))
    app.add_exception_handler(UnsuitableRun, _handler(422))
    app.add_exception_handler(NotFound, _handler(404))
    app.add_exception_handler(RunBusy, _handler(503))
    app.add_exception_handler(Transient, _outage)
    app.add_exception_handler(Permanent, _handler(500))  # a stored object is wrong, and the error names it


def _body_model(request: Request) -> type[BaseModel] | None:
    """The model of the route's body: misspelt fields get a suggestion from it."""
    field = getattr(request.scope.get("route"), "body_field", None)
    model = getattr(field, "type_", None) or getattr(getattr(field, "field_info", None), "annotation", None)
    return model if isinstance(model, type) and issubclass(model, BaseModel) else None


def _methods(app: FastAPI, path: str) -> set[str]:
    """The methods of a documented path; empty for a page."""
    documented: dict[str, dict[str, Any]] = app.openapi()["paths"]
    matching = [methods for template, methods in documented.items() if compile_path(template)[0].match(path)]
    return {method.upper() for methods in matching for method in methods}


async def _outage(_: Request, error: Exception) -> JSONResponse:
    """An outage of store or bus. Its reason names internal addresses: it belongs into the log only."""
    log.warning("request failed", error=str(error))
    return problem_response(503, "The store or the bus does not answer: retry in 2 seconds.", {"Retry-After": "2"})


def _handler(status: int) -> Any:
    async def handler(_: Request, error: Exception) -> JSONResponse:
        headers = {"Retry-After": "2"} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
        return problem_response(status, f"{str(error).rstrip('.')}.", headers)

    return handler


def validation_sentence(item: Mapping[str, Any], body: type[BaseModel] | None) -> str:
    """One validation error as `field: what is wrong; what to do`. `body` is the model of the request's body."""
    source, *place = item.get("loc") or ("",)
    location = [str(part) for part in (place if source in SOURCES else (source, *place))]
    where = ".".join(location) or "The body"
    if item.get("type") == "json_invalid":
        where, text = "The body", f"not JSON ({item.get('ctx', {}).get('error', 'cannot be read')})"
    elif item.get("type") in OBJECT_EXPECTED and not location:
        text = "must be a JSON object, sent with `Content-Type: application/json`"
    elif item.get("type") == "missing":
        text = "required, but missing"
    else:
        text = describe_problem(item, location, body if source == "body" else None)
    text = f"{text[0].lower()}{text[1:]}" if text[:2] != text[:2].upper() else text
    return f"{where}: {text}"[:400].rstrip(".") + ("" if text.endswith("?") else ".")
