"""Defaults and limits of new runs: what the installation knows about its cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from services.coordinator.api.models import NewRun
from shared.config.problems import first_problem
from shared.contracts.run import RunConfig
from shared.errors import ZeldaError


class UnsuitableRun(ZeldaError):
    """The cluster cannot run what a request asks for. The message names the field and the remedy."""


@dataclass(frozen=True, slots=True)
class RunDefaults:
    """`fields` complete a request; `max_env_runners` is the room of the cluster, None if unknown.

    `games` are the games that it can open, None if unknown.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    max_env_runners: int | None = None
    games: Sequence[str] | None = None

    def complete(self, config: RunConfig) -> RunConfig:
        """The configuration with the installation's defaults; raise UnsuitableRun if it cannot run here."""
        given = config.model_dump(exclude_unset=True)
        if self.fields:
            config = self._checked(_over(self.fields, given))
        if self.games is not None and config.game not in self.games:
            raise UnsuitableRun(
                f"config.game: this system has no ROM of {config.game}: start it with `zelda up --rom FILE`, or on a "
                f"cluster set `rom.source`; without a ROM it plays {', '.join(self.games)}."
            )
        limit, replicas = self.max_env_runners, config.learners - 1
        if limit is not None and replicas > limit:
            raise UnsuitableRun(
                f"config.learners: {replicas} of {config.learners} learners run on the cluster's workers, which have "
                f"{limit} cores: ask for at most {limit + 1}, or enlarge ray.workers."
            )
        if limit is not None and config.env_runners > limit:
            raise UnsuitableRun(
                f"config.env_runners: {config.env_runners} env runners need as many cores, and the cluster's workers "
                f"have {limit}: ask for at most {limit}, or enlarge ray.workers."
            )
        return config

    def _checked(self, fields: dict[str, Any]) -> RunConfig:
        try:
            return NewRun.model_validate({"config": fields}).config
        except ValidationError as error:
            problem = first_problem(error).replace("Value error, ", "")
            defaults = ", ".join(sorted(self.fields))
            raise UnsuitableRun(
                f"{problem}. Defaults of this installation that your request can replace: {defaults}."
            ) from error


def _over(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """`given` over `defaults`, group by group."""
    result = dict(defaults)
    for name, value in given.items():
        former = result.get(name)
        both = isinstance(former, Mapping) and isinstance(value, Mapping)
        result[name] = _over(former, value) if both else value  # type: ignore[arg-type]
    return result
