"""Parses the arguments that describe a run: its name, `--set FIELD=VALUE` pairs and `--config FILE`."""

import json
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.errors import USAGE, CliError
from shared.contracts.ids import RunId

if TYPE_CHECKING:
    from shared.contracts.run import RunConfig


def parse_fields(pairs: list[str], base: dict[str, Any] | None = None) -> dict[str, Any]:
    """`a.b=1` pairs as nested JSON on top of `base`; values that are not JSON are text."""
    made = deepcopy(base or {})
    for pair in pairs:
        path, separator, text = pair.partition("=")
        if not separator or not path:
            raise CliError(USAGE, f"--set {pair}: write FIELD=VALUE, e.g. --set epochs=5.")
        *parents, last = path.split(".")
        place = made
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise CliError(
                    USAGE, f"--set {pair}: {parent} is {json.dumps(place)} and has no fields: set one of the two."
                )
        place[last] = _parse_value(text)
    return made


def run_config(values: dict[str, Any]) -> "RunConfig":
    """The configuration of a run; CliError if it is none, before anything is started for it."""
    from pydantic import ValidationError

    from shared.contracts.base import first_problem
    from shared.contracts.run import RunConfig

    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        *parents, last = (str(part) for part in problem["loc"] or ("",))
        if problem["type"] != "extra_forbidden":
            raise CliError(USAGE, f"--set {first_problem(error)}.") from error
        place: Any = RunConfig
        for parent in parents:
            place = place.model_fields[parent].annotation
        known = ", ".join(place.model_fields)
        raise CliError(USAGE, f"--set {'.'.join((*parents, last))}: no such field; known are {known}.") from error


def parse_run_id(name: str) -> RunId:
    """Parse a run name; CliError if it is not a valid id, because it becomes part of an address."""
    try:
        return RunId(name)
    except ValueError as error:
        raise CliError(USAGE, f"{error}.") from error


def _parse_value(text: str) -> Any:
    try:
        return _parse_json(text)
    except ValueError:
        return text


def _parse_json(text: str) -> Any:
    """The JSON in a text; ValueError also for NaN and 1e999, which Python reads and no request can carry."""
    found = json.loads(text)
    json.dumps(found, allow_nan=False)
    return found


def load_config_file(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        found = _parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CliError(USAGE, f"--config {path}: {error.strerror}: name a file with a run's settings.") from error
    except ValueError as error:  # neither JSON nor text
        raise CliError(USAGE, f"--config {path} is not JSON: {error}.") from error
    if not isinstance(found, dict):
        raise CliError(USAGE, f"--config {path}: it must hold a JSON object.")
    return found
