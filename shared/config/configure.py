"""Reads the settings of a process, or exits with code 2 after listing every problem, one sentence each.

pydantic-settings ignores a misspelt variable; here an unknown `ZELDA_*` name prevents the start.
"""

import argparse
import difflib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import SettingsError

from shared.config.groups import GROUPS
from shared.config.settings import NESTED, PREFIX, ProcessSettings, ServiceSettings

EXIT_CONFIG = 2
# Read by the runtime itself, not by a settings class.
RUNTIME_NAMES = ("ZELDA_FAILPOINTS", "ZELDA_PRODUCTION")
# A shared environment may contain variables of another service's own group (ZELDA_JUDGE__...).
SERVICE_GROUPS = {group for groups in GROUPS.values() for group in groups}
# Kubernetes injects such names for every Service object named `zelda...`.
_SERVICE_LINK = re.compile(r"_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$|_PORT(_\d+_(TCP|UDP)(_(PROTO|PORT|ADDR))?)?$")

S = TypeVar("S", bound=ProcessSettings)


def configure(name: str, settings_type: type[S], argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> S:
    """The validated settings. `--print-config` and `--check-config` print and exit 0; a problem exits 2."""
    arguments = _parser(name, settings_type).parse_args(argv)
    settings = read_or_exit(name, settings_type, environ)
    if arguments.print_config:
        _print_and_exit(json.dumps(redacted(settings), indent=2))
    if arguments.check_config:
        _print_and_exit(f"{name}: the configuration is valid")
    return settings


def read_or_exit(name: str, settings_type: type[S], environ: Mapping[str, str] = os.environ) -> S:
    """The validated settings of a program without configuration options; a problem exits 2."""
    settings, problems = read_settings(settings_type, environ)
    if settings is None or problems:
        sys.stderr.write("".join(f"{name}: {problem}\n" for problem in problems))
        raise SystemExit(EXIT_CONFIG)
    return settings


def read_settings(settings_type: type[S], environ: Mapping[str, str] = os.environ) -> tuple[S | None, list[str]]:
    """Settings and problems; the settings are None when validation failed."""
    problems = unknown_names(settings_type, environ)
    try:
        return settings_type(), problems
    except ValidationError as error:
        if malformed := _malformed_lists(settings_type, environ):  # of an optional list
            return None, problems + malformed
        # A misspelt name is also an extra field; it is already reported, with the intended name.
        others = [item for item in error.errors(include_url=False) if item["type"] != "extra_forbidden" or not problems]
        return None, problems + [_describe(settings_type, item) for item in others]
    except SettingsError as error:
        return None, problems + (_malformed_lists(settings_type, environ) or [f"{error}: {error.__cause__}"[:300]])


def known_names(settings_type: type[BaseModel]) -> Iterator[str]:
    """Every environment variable that a settings class reads."""
    return (name for name, _ in _variables(settings_type))


def _variables(settings_type: type[BaseModel], prefix: str = PREFIX) -> Iterator[tuple[str, FieldInfo]]:
    for field, info in settings_type.model_fields.items():
        name = f"{prefix}{field}".upper()
        yield name, info
        for candidate in (info.annotation, *get_args(info.annotation)):
            if isinstance(candidate, type) and issubclass(candidate, BaseModel):
                yield from _variables(candidate, f"{name}{NESTED}")


def unknown_names(settings_type: type[ProcessSettings], environ: Mapping[str, str]) -> list[str]:
    """One sentence for each `ZELDA_*` variable that no setting reads, with the nearest known name."""
    known = {*known_names(settings_type), *known_names(ServiceSettings), *RUNTIME_NAMES}
    unknown = sorted(name for name in environ if name.upper().startswith(PREFIX) and name.upper() not in known)
    return [_suggest(name, known) for name in unknown if not _is_foreign(name, environ[name], known)]


def _takes_list(annotation: Any) -> bool:
    """Whether a field is a list or a tuple, possibly an optional one."""
    return any(get_origin(kind) in (list, tuple) for kind in (annotation, *get_args(annotation)))


def _malformed_lists(settings_type: type[BaseModel], environ: Mapping[str, str]) -> list[str]:
    """One sentence for each malformed list; pydantic-settings would only name its group."""
    lists = [name for name, info in _variables(settings_type) if _takes_list(info.annotation)]
    advice = 'write the list as JSON: [] or [1, 2] or ["a", "b"]'
    return [f"{name}: {advice}" for name in lists if name in environ and not _is_json(environ[name])]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def redacted(settings: BaseModel) -> dict[str, Any]:
    """The settings as plain data. Secrets are file names; a `SecretStr` value becomes asterisks."""
    return settings.model_dump(mode="json")


def _is_foreign(name: str, value: str, known: set[str]) -> bool:
    group = name.upper().removeprefix(PREFIX).partition(NESTED)[0]
    if group in SERVICE_GROUPS and NESTED in name:
        return not any(candidate.startswith(f"{PREFIX}{group}{NESTED}") for candidate in known)
    return bool(_SERVICE_LINK.search(name)) and ("://" in value or "_SERVICE_" in name or "_TCP_" in name)


def _suggest(name: str, known: set[str]) -> str:
    # Without the prefix, which would make all names similar.
    tails = sorted(candidate.removeprefix(PREFIX) for candidate in known)
    near = difflib.get_close_matches(name.upper().removeprefix(PREFIX), tails, n=1, cutoff=0.6)
    advice = f"did you mean {PREFIX}{near[0]}?" if near else "unset it; --print-config lists the names"
    return f"{name}: no such setting; {advice}"


def _describe(settings_type: type[BaseModel], item: Any) -> str:
    names = [str(part) for part in item["loc"] if not isinstance(part, int)]
    known = set(known_names(settings_type))
    name = PREFIX + NESTED.join(names).upper()
    while names and name not in known:  # a location may be deeper than the variable (union branches, list items)
        names.pop()
        name = PREFIX + NESTED.join(names).upper()
    text = item["msg"].removeprefix("Value error, ")
    return f"{name.removesuffix('_') if not names else name}: {text[0].lower()}{text[1:]}"


def _parser(name: str, settings_type: type[BaseModel]) -> argparse.ArgumentParser:
    lines = "\n".join(_help_entry(*variable) for variable in _variables(settings_type) if NESTED in variable[0])
    parser = argparse.ArgumentParser(
        prog=f"python -m services.{name}",
        description=f"The {name} service. Environment variables configure it, here with their defaults:\n{lines}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--print-config", action="store_true", help="print the effective settings without secrets")
    parser.add_argument("--check-config", action="store_true", help="check the settings and exit")
    return parser


def _help_entry(variable: str, info: FieldInfo) -> str:
    """A variable with its default, if that is one word, and its description."""
    default = str(info.default) if isinstance(info.default, str | int | float) else ""
    return f"  {variable}={default}" + (f"\n      {info.description}" if info.description else "")


def _print_and_exit(text: str) -> NoReturn:
    sys.stdout.write(text + "\n")
    raise SystemExit(0)
