"""Typed identifiers, parsed at every edge.

One pattern for all of them closes subject, object-key and path injection: an id holds no dot, slash, star or blank.
"""

import re
from typing import Any, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

ID_PATTERN = r"^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$"
_ID = re.compile(ID_PATTERN)
_DIGEST = re.compile(r"^[0-9a-f]{64}$")


class Id(str):
    """A string of 1-40 characters: lower-case letters, digits and inner hyphens."""

    pattern = _ID
    shape = "1-40 lower-case letters, digits or inner hyphens"
    noun = ""
    """What a message calls the id; empty: the name of its class."""

    def __new__(cls, value: str) -> Self:
        """Return the id, or raise ValueError with a sentence that shows the expected shape."""
        # `fullmatch`, because `$` alone would let a trailing newline through.
        if not isinstance(value, str) or not cls.pattern.fullmatch(value):
            raise ValueError(f"{value!r:.80} is not {cls.noun or f'a {cls.__name__}'}: use {cls.shape}")
        return super().__new__(cls, value)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls, core_schema.str_schema(strict=True))

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "string", "pattern": cls.pattern.pattern, "description": cls.shape}


class RunId(Id):
    """One run: from POST /runs to its summary."""

    noun = "the name of a run"


class EpisodeId(Id):
    """One episode within an epoch of a run; unique within the run."""


class SegmentId(Id):
    """One recorded segment; unique within the run."""


class StateName(Id):
    """A state of a game that a user saved; unique within a store."""

    noun = "the name of a saved state"


class JudgeName(Id):
    """One judge: `state`, `puzzle`, `vision`, `rules` or one of the user's own."""


class Tag(Id):
    """A word by which people find runs again."""


class Digest(Id):
    """SHA-256 of an object's bytes, lower-case hexadecimal."""

    pattern = _DIGEST
    shape = "64 lower-case hexadecimal digits"
