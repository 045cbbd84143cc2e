"""Phi along recorded segments: the potential of each state, by the reward model that shaped the segment."""

import numpy as np
from numpy.typing import NDArray

from shared.contracts.epoch import EpochStart
from shared.errors import ContractError
from shared.game.recording.segment import Segment
from shared.rewardnet import RewardNet, conservative_potential, view_of
from shared.store import keys
from shared.store.port import NotFound, Store


class Potentials:
    """Computes potentials; the reward model of each epoch is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._models: dict[str, tuple[RewardNet, str, float] | None] = {}

    async def of(self, segment: Segment) -> NDArray[np.float32] | None:
        """Phi, (steps + 1,), as in training. None if nothing shaped the segment or its model expired."""
        manifest = segment.manifest
        if manifest.reward_model is None:
            return None
        key = keys.epoch_start(manifest.run, manifest.epoch)
        if key not in self._models:
            self._models[key] = await self._read(key)
        found = self._models[key]
        if found is None:
            return None
        network, view, conservatism = found
        scores = network.forward(segment.states_in(view))
        return conservative_potential(scores, conservatism, network.weights.disagreement)

    async def _read(self, key: str) -> tuple[RewardNet, str, float] | None:
        """The reward model that this order names; None if it expired or is unreadable."""
        try:
            order = EpochStart.from_bytes(await self._store.get(key))
            if order.reward_model is None:
                return None
            raw = await self._store.get(order.reward_model.weights_key, order.reward_model.weights_digest)
            view = view_of(raw)
            return RewardNet.from_bytes(raw, view), view, order.config.shaping.conservatism
        except (NotFound, ContractError):
            return None
