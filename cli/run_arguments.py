"""Parses the arguments that describe a run: its name, `--set FIELD=VALUE` pairs and `--config FILE`."""

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from cli.errors import NOT_FOUND, USAGE, CliError, end_sentence
from shared.contracts.ids import RunId, SegmentId

if TYPE_CHECKING:
    from shared.contracts.run import RunConfig


ORIGINAL_NAMES: Final = {
    "RUN_HOURS": "run_hours",
    "EPOCH_STEPS": "epoch_steps",
    "EPISODE_LENGTH": "episode_length",
    "RAY_WORKERS": "env_runners",
    "ENVS_PER_WORKER": "envs_per_runner",
    "BATCH_SIZE": "batch_size",
    "EVAL_INTERVAL": "judge_interval",
}
"""Variables of the original system's training job, and the fields of a run that they set."""


def parse_fields(pairs: list[str], base: dict[str, Any] | None = None) -> dict[str, Any]:
    """Parse `a.b=1` pairs into nested JSON on top of `base`; values that are not JSON stay text."""
    nested = deepcopy(base or {})
    for pair in pairs:
        path, separator, text = pair.partition("=")
        if not separator or not path:
            raise CliError(USAGE, f"--set {pair}: write FIELD=VALUE, e.g. --set epochs=5.")
        *parents, last = ORIGINAL_NAMES.get(path, path).split(".")
        node = nested
        for parent in parents:
            node = node.setdefault(parent, {})
            if not isinstance(node, dict):
                raise CliError(
                    USAGE, f"--set {pair}: {parent} is {json.dumps(node)} and has no fields: remove one of the two."
                )
        node[last] = _parse_value(text)
    return nested


def run_config(values: dict[str, Any], named: Mapping[str, str] = MappingProxyType({})) -> "RunConfig":
    """Validate the configuration of a run; CliError names the first invalid field.

    `named` maps fields to the options that set them; `--set` sets the others.
    """
    from pydantic import ValidationError

    from shared.config.problems import located_problem
    from shared.contracts.run import RunConfig

    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        field, reason = located_problem(error, RunConfig)
        where = named.get(field, f"--set {field}")
        raise CliError(USAGE, end_sentence(f"{where}: {reason}" if field else reason)) from error


def parse_run_id(name: str) -> RunId:
    """Parse a run name; CliError if it is not a valid id, because it becomes part of an address."""
    try:
        return RunId(name)
    except ValueError as error:
        hint = f"; a field of the run needs -s: -s {name}" if "=" in name else ""
        raise CliError(USAGE, f"{error}{hint}.") from error


def parse_segment_id(name: str) -> SegmentId:
    """Parse the name of a segment; CliError if no segment can have it."""
    try:
        return SegmentId(name)
    except ValueError as error:
        raise CliError(
            NOT_FOUND, f"{name!r} is no name of a segment: one looks like e0001-r00-v03-0005-s000."
        ) from error


def _parse_value(text: str) -> Any:
    try:
        return _parse_json(text)
    except ValueError:
        return text


def _parse_json(text: str) -> Any:
    """Parse JSON; ValueError also for NaN and 1e999, which no request can carry, and for a key that occurs twice."""
    try:
        found = json.loads(text, object_pairs_hook=_unique_keys)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    json.dumps(found, allow_nan=False)
    return found


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object; Python would take the last of two equal keys silently."""
    found = dict(pairs)
    for key in found:
        if sum(key == other for other, _ in pairs) > 1:
            raise ValueError(f"the key {key!r} occurs twice in an object")
    return found


def load_config_file(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        found = _parse_json(path.read_text(encoding="utf-8-sig"))  # editors on Windows write a mark
    except OSError as error:
        raise CliError(
            USAGE, f"--config {path}: {error.strerror}: name a JSON file with the configuration of a run."
        ) from error
    except ValueError as error:  # invalid JSON or invalid UTF-8
        raise CliError(USAGE, f"--config {path} is not JSON: {error}.") from error
    if not isinstance(found, dict):
        raise CliError(USAGE, f"--config {path}: it must contain a JSON object.")
    return found
