"""The connectors between vector environment and policy on an env runner: array to tensor, and back.

RLlib's default connectors batch and unbatch per episode on every step; these two cost a tenth of that.
"""

from typing import Any

import torch
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.columns import Columns

from services.trainer.rl.pixel_observation import as_network_input


class ObservationsToTensor(ConnectorV2):
    """Env to module: the newest observation of each environment as one tensor."""

    def __call__(
        self,
        *,
        rl_module: Any,
        batch: dict[str, Any],
        episodes: list[Any],
        explore: bool | None = None,
        shared_data: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Add the observations to `batch`. After a reset RLlib passes only episodes; after a step also the arrays."""
        newest = kwargs.get(Columns.OBS)
        if newest is None:
            newest = [episode.get_observations(-1) for episode in episodes]
        batch[Columns.OBS] = torch.from_numpy(as_network_input(newest))
        return batch


class TensorsToArrays(ConnectorV2):
    """Module to env: actions and log-probabilities as arrays."""

    def __call__(
        self,
        *,
        rl_module: Any,
        batch: dict[str, Any],
        episodes: list[Any],
        explore: bool | None = None,
        shared_data: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Convert every column of `batch`."""
        return {column: tensor.numpy() for column, tensor in batch.items()}
