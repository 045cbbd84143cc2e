"""The states of a segment as a model sees them: the one place that turns what was recorded into its inputs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared.errors import ContractError
from shared.game.observation import counters, layout, with_counters

Observations = NDArray[np.float32]
Counts = NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class RecordedStates:
    """Both recorded forms of a segment's states, each with the version of its layout."""

    segment: str
    layout: str
    observations: Observations
    """(steps + 1, inputs of the layout)."""
    counters: str | None
    counts: Counts | None
    """(steps + 1, inputs of the counters); None in archives older than 2026-11-23."""

    def in_view(self, view: str) -> Observations:
        """All states (steps + 1, D) as a model of this view sees them; ContractError if recorded without it.

        Reward models see features (obs/v1) or counters; a policy sees features, or both (obs/v2).
        """
        if view == with_counters.VERSION:
            return np.concatenate([self.in_view(layout.VERSION), self.in_view(counters.VERSION)], axis=1)
        if view == counters.VERSION and self.counters == view and self.counts is not None:
            self._check_inputs(self.counts.shape[1], counters.SIZE, view)
            return counters.features(self.counts)
        if view == layout.VERSION and self.layout == view:
            self._check_inputs(self.observations.shape[1], layout.SIZE, view)
            return self.observations
        raise ContractError(f"segment {self.segment} was recorded without {view}: judge segments of a newer run")

    def _check_inputs(self, found: int, wanted: int, view: str) -> None:
        if found != wanted:
            raise ContractError(f"segment {self.segment}: {found} inputs, {view} has {wanted}")
