"""Errors of the API as problem documents (RFC 9457). `detail` is one sentence: what is wrong, where, what to do."""

import difflib
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from services.coordinator.domain.lifecycle import RunConflict
from shared.errors import Permanent, Transient
from shared.store.port import NotFound


class ProblemDetail(BaseModel):
    """The body of every error response (RFC 9457)."""

    type: str = "about:blank"
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["There is no run 'demo': see GET /runs."])


def problem_response(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An error response."""
    body = ProblemDetail(title=HTTPStatus(status).phrase, status=status, detail=detail)
    return JSONResponse(body.model_dump(), status, headers, media_type="application/problem+json")


def install_error_handlers(app: FastAPI, fields: Iterable[str]) -> None:
    """Map each error type to its status. `fields` are the valid field names of requests, for `did you mean`."""
    known = sorted(fields)

    async def invalid(_: Request, error: Exception) -> JSONResponse:
        first = error.errors()[0] if isinstance(error, RequestValidationError) else {}
        return problem_response(422, validation_sentence(first, known))

    async def http(_: Request, error: Exception) -> JSONResponse:
        status = error.status_code if isinstance(error, HTTPException) else 500
        if status == HTTPStatus.BAD_REQUEST:  # from FastAPI when the parser fails on encoding, depth or a number
            return problem_response(422, "The body is unreadable: send a JSON object in UTF-8.")
        detail = error.detail if isinstance(error, HTTPException) else "Internal error."
        headers = error.headers if isinstance(error, HTTPException) else None
        if not detail.endswith("."):
            detail = f"{detail}: see /docs for the available routes."
        return problem_response(status, detail, headers)

    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RunConflict, _handler(409))
    app.add_exception_handler(NotFound, _handler(404))
    app.add_exception_handler(Transient, _handler(503))
    app.add_exception_handler(Permanent, _handler(500))  # a stored object is wrong, and the error names it


def _handler(status: int) -> Any:
    async def handler(_: Request, error: Exception) -> JSONResponse:
        headers = {"Retry-After": "2"} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
        return problem_response(status, f"{str(error).rstrip('.')}.", headers)

    return handler


def validation_sentence(item: Mapping[str, Any], known: Iterable[str]) -> str:
    """One validation error as `field: what is wrong; what to do`."""
    location = [str(part) for part in item.get("loc", ()) if part not in ("body", "query", "path", "header")]
    where = ".".join(location) or "The body"
    text = str(item.get("msg", "is not valid")).removeprefix("Value error, ")
    if item.get("type") == "extra_forbidden":
        near = difflib.get_close_matches(location[-1], list(known), n=1, cutoff=0.8)
        text = f"no such field; did you mean {near[0]}?" if near else "no such field; see /docs for the names"
    elif item.get("type") == "json_invalid":
        where, text = "The body", f"not JSON ({item.get('ctx', {}).get('error', 'cannot be read')})"
    elif item.get("type") == "model_attributes_type":
        text = "must be a JSON object, sent with `Content-Type: application/json`"
    elif item.get("type") == "missing":
        text = "required, but missing"
    text = f"{text[0].lower()}{text[1:]}" if text[:2] != text[:2].upper() else text
    return f"{where}: {text}"[:400].rstrip(".") + ("" if text.endswith("?") else ".")
