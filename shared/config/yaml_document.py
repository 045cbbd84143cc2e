"""Reads a YAML document that a user wrote into a strict model. An error is one sentence that names file and field."""

from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from shared.config.problems import first_problem


class ConfigError(ValueError):
    """A configuration file is invalid. The message names file and field."""


class StrictModel(BaseModel):
    """Base class: unknown fields are rejected, values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)


T = TypeVar("T", bound=StrictModel)


def read_yaml(path: Path) -> Any:
    """The content of a YAML file. Raises ConfigError."""
    try:
        return yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not readable ({error}): give a readable YAML file") from error
    except (yaml.YAMLError, ValueError) as error:  # a ValueError: a wrong date, such as 2024-13-45
        raise ConfigError(f"{path}: not YAML: {' '.join(str(error).split())[:200]}") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: not YAML: it is nested too deeply") from error


def read_built_in(package: str, name: str) -> Any:
    """The content of a YAML file that is part of a package."""
    return yaml.safe_load(resources.files(package).joinpath(name).read_text("utf-8"))


def load_routes(model: type[T], path: Path | None, built_in: Any, url: str, where: str) -> T:
    """The document at `path`; without one, the built-in one with all its routes at `url`. Raises ConfigError."""
    if path is not None:
        return parse_document(model, read_yaml(path), str(path))
    for route in built_in["routes"].values():
        route["url"] = url
    return parse_document(model, built_in, where)


def parse_document(model: type[T], data: Any, where: str) -> T:
    """Validate data as this model. Raises ConfigError, which begins with `where`."""
    if not isinstance(data, dict):
        raise ConfigError(f"{where}: not a mapping; give a mapping with {', '.join(model.model_fields)}")
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise ConfigError(f"{where}: {first_problem(error, model)}") from error
