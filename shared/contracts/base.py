"""The base of all contract models.

Readers ignore unknown fields (an old reader may meet a new writer), even where a model refuses them in a request.
Writers are strict: every constructor call is type-checked. Numbers are finite and collections bounded.
"""

import hashlib
from typing import Any, Self, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator

from shared.config.problems import first_problem
from shared.errors import ContractError


class Contract(BaseModel):
    """Base of every document and event: frozen, finite, forward compatible."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, ser_json_inf_nan="constants")

    def to_bytes(self) -> bytes:
        """Canonical JSON bytes: the model's field order, no blanks."""
        return self.model_dump_json().encode()

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Parse `raw`, or raise ContractError with one sentence that names the field."""
        try:
            return cls.model_validate_json(raw, extra="ignore")
        except ValidationError as error:
            raise ContractError(f"not a valid {cls.__name__}: {first_problem(error, cls)}") from error


def sha256(raw: bytes) -> str:
    """SHA-256 of an object's bytes, in hexadecimal, as keys, events and manifests use it."""
    return hashlib.sha256(raw).hexdigest()


class Configuration(Contract):
    """A part of a run's configuration. Misspelt fields are refused, and so is true or false where a number belongs."""

    # In requests only: `from_bytes` ignores unknown fields, because a newer version may have written the document.
    model_config = ConfigDict(extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _number(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse a truth value for a number: pydantic takes true as 1."""
        if isinstance(value, bool) and info.field_name is not None:
            annotation = cls.model_fields[info.field_name].annotation
            types = {annotation, *get_args(annotation)}
            if not types.isdisjoint((int, float)) and bool not in types:
                raise ValueError(f"{str(value).lower()} is not a number")
        return value
