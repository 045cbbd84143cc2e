"""Errors of the API as problem documents (RFC 9457): one sentence that says what is wrong, where, and what to do."""

import difflib
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from services.coordinator.domain.lifecycle import WrongState
from shared.errors import Permanent, Transient
from shared.store.port import NotFound


class Problem(BaseModel):
    """What the API answers when a request cannot be served."""

    type: str = "about:blank"
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["There is no run 'demo': see GET /runs."])


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The answer for one problem."""
    body = Problem(title=HTTPStatus(status).phrase, status=status, detail=detail)
    return JSONResponse(body.model_dump(), status, headers, media_type="application/problem+json")


def install(app: FastAPI, fields: Iterable[str]) -> None:
    """Give every kind of error its answer. `fields` are the names that a request may hold, for `did you mean`."""
    known = sorted(fields)

    async def invalid(_: Request, error: Exception) -> JSONResponse:
        return problem(422, sentence(error.errors()[0] if isinstance(error, RequestValidationError) else {}, known))

    async def http(_: Request, error: Exception) -> JSONResponse:
        status = error.status_code if isinstance(error, HTTPException) else 500
        if status == HTTPStatus.BAD_REQUEST:  # what FastAPI answers if the parser broke off: text, depth or a number
            return problem(422, "The body: cannot be read; send a JSON object in UTF-8.")
        detail = error.detail if isinstance(error, HTTPException) else "Internal error."
        headers = error.headers if isinstance(error, HTTPException) else None
        return problem(status, detail if detail.endswith(".") else f"{detail}: see /docs for what there is.", headers)

    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(WrongState, _answer(409))
    app.add_exception_handler(NotFound, _answer(404))
    app.add_exception_handler(Transient, _answer(503))
    app.add_exception_handler(Permanent, _answer(500))  # what is stored is wrong, and the error says where


def _answer(status: int) -> Any:
    async def handler(_: Request, error: Exception) -> JSONResponse:
        headers = {"Retry-After": "2"} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
        return problem(status, f"{str(error).rstrip('.')}.", headers)

    return handler


def sentence(item: Mapping[str, Any], known: Iterable[str]) -> str:
    """One validation problem as `field: what is wrong; what to do`."""
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
        text = "missing; it must be given"
    text = f"{text[0].lower()}{text[1:]}" if text[:2] != text[:2].upper() else text
    return f"{where}: {text}"[:400].rstrip(".") + ("" if text.endswith("?") else ".")
