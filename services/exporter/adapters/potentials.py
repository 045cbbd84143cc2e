"""Phi along recorded segments: the potential of each state, by the reward model that shaped the segment."""

import asyncio
from dataclasses import dataclass
from typing import Self

import numpy as np
import structlog
from numpy.typing import NDArray

from services.exporter.adapters.orders import CACHED_EPOCHS, EpochOrders
from shared.contracts.ids import RunId
from shared.errors import ContractError, DigestMismatch
from shared.game.recording.segment import Segment
from shared.process.bounded_cache import BoundedCache
from shared.rewardnet import RewardNet, conservative_potential, view_of
from shared.store.port import NotFound, Store

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _EpochModel:
    """The reward model of an epoch, and how conservatively the epoch used it."""

    network: RewardNet
    view: str
    conservatism: float

    @classmethod
    def of(cls, raw: bytes, conservatism: float) -> Self:
        """Raises ContractError if `raw` is no model."""
        view = view_of(raw)
        return cls(RewardNet.from_bytes(raw, view), view, conservatism)

    def potentials(self, segment: Segment) -> NDArray[np.float32]:
        """Phi, (steps + 1,)."""
        scores = self.network.forward(segment.states_in(self.view))
        return conservative_potential(scores, self.conservatism, self.network.weights.disagreement)


class Potentials:
    """Computes potentials. The models of the last CACHED_EPOCHS epochs are kept."""

    def __init__(self, store: Store, orders: EpochOrders) -> None:
        self._store, self._orders = store, orders
        self._models: BoundedCache[tuple[RunId, int], _EpochModel | None] = BoundedCache(CACHED_EPOCHS)

    async def of(self, segment: Segment) -> NDArray[np.float32] | None:
        """Phi, (steps + 1,), as in training. None if nothing shaped the segment or its model is no longer there."""
        manifest = segment.manifest
        if manifest.reward_model is None:
            return None
        place = manifest.run, manifest.epoch
        if place not in self._models:
            self._models.put(place, await self._read(*place))
        found = self._models.get(place)
        return None if found is None else await asyncio.to_thread(found.potentials, segment)

    async def _read(self, run: RunId, epoch: int) -> _EpochModel | None:
        """The reward model that the epoch's order names; None if it expired, or is damaged, which is logged."""
        try:
            order = await self._orders.of(run, epoch)
            if order.reward_model is None:
                return None
            raw = await self._store.get(order.reward_model.weights_key, order.reward_model.weights_digest)
            return await asyncio.to_thread(_EpochModel.of, raw, order.config.shaping.conservatism)
        except NotFound:
            return None
        except (ContractError, DigestMismatch) as error:
            log.warning("exporting without potentials", run=run, epoch=epoch, reason=str(error))
            return None
