"""Words for values that a model refuses: what is wrong, and what to write instead."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel, ValidationError

OBJECT_EXPECTED: Final = ("model_type", "model_attributes_type")
LIMIT: Final = 300  # characters of a sentence, for a log line
MAX_NAMED: Final = 10  # fields in one sentence


def first_problem(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """The first problem as `field: reason`. With the `model`, a misspelt field gets a suggestion.

    Without the field if several fields together are wrong, or if nothing could be parsed.
    """
    field, reason = located_problem(error, model)
    return f"{field}: {reason}"[:LIMIT] if field else reason


def located_problem(error: ValidationError, model: type[BaseModel] | None = None) -> tuple[str, str]:
    """The field of the first problem, empty if several fields together are wrong; and the reason."""
    problem = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in problem["loc"])
    return field, describe_problem(problem, problem["loc"], model)[:LIMIT]


def describe_problem(item: Mapping[str, Any], place: Sequence[Any], model: type[BaseModel] | None) -> str:
    """What is wrong with the value at `place` in `model`. `item` is one of pydantic's errors."""
    kind, text = item.get("type"), str(item.get("msg", "is not valid")).removeprefix("Value error, ")
    if kind == "extra_forbidden":
        known = sorted(_fields(model, place[:-1]))
        near = difflib.get_close_matches(str(place[-1]), known, n=1, cutoff=0.8)
        listed = f"; choose from {', '.join(known)}" if known else ""
        return "no such field" + (f"; did you mean {near[0]}?" if near else listed)
    if kind in OBJECT_EXPECTED and place and (fields := _fields(model, place)):
        more = f" and {len(fields) - MAX_NAMED} more" if len(fields) > MAX_NAMED else ""
        return f"has fields of its own: {', '.join(f'{place[-1]}.{name}' for name in fields[:MAX_NAMED])}{more}"
    if kind == "literal_error":
        choices = [part.strip("'") for part in str(item["ctx"]["expected"]).replace(" or ", ", ").split(", ")]
        return text + suggestion(item.get("input"), choices)
    return text


def suggestion(value: Any, choices: Sequence[str]) -> str:
    """`; did you mean ...?` for a value that resembles a choice, else nothing."""
    near = difflib.get_close_matches(value, choices, n=1) if isinstance(value, str) else []
    return f"; did you mean {near[0]}?" if near else ""


def _fields(model: Any, place: Sequence[Any]) -> list[str]:
    """The fields of the model at `place` within another one; none if there is no model."""
    for part in place:
        model = _type_at(model, part)
    found = _as_model(model)
    return list(found.model_fields) if found is not None else []


def _type_at(annotation: Any, part: Any) -> Any:
    """The type of one part: the field of a model, or the items of a collection."""
    model = _as_model(annotation)
    if model is not None:
        return model.model_fields[part].annotation if part in model.model_fields else None
    inner = [one for one in get_args(annotation) if one not in (None, type(None), Ellipsis)]
    return inner[-1] if inner else None


def _as_model(annotation: Any) -> type[BaseModel] | None:
    """The model that an annotation names, also as an optional one."""
    candidates = [annotation] if get_origin(annotation) in (None, list, tuple, dict) else get_args(annotation)
    return next((one for one in candidates if isinstance(one, type) and issubclass(one, BaseModel)), None)
