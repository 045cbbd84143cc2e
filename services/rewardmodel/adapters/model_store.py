"""Reward models in the store: earlier ones to continue and to cite, the new one to commit.

Weights first, under a name that holds their digest, so that two writers never overwrite each other; then the card,
created once: it is the commit. Copies under the plain names are for people and other tools.
"""

from dataclasses import dataclass
from typing import Final

import structlog

from shared.contracts.base import sha256
from shared.contracts.card import RewardModelCard
from shared.contracts.epoch import RewardModelRef
from shared.contracts.ids import RunId
from shared.errors import ContractError
from shared.process.failpoints import failpoint
from shared.rewardnet import RewardWeights, load
from shared.store import keys
from shared.store.create import create_if_absent, create_or_read
from shared.store.port import Store

MAX_HISTORY: Final = 100

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StoredCard:
    """A committed card: its key, the SHA-256 of its bytes, and what it says."""

    key: str
    digest: str
    card: RewardModelCard

    @property
    def reference(self) -> RewardModelRef:
        """The name under which others load the model."""
        return self.card.reference(self.key, self.digest)


class RewardModelStore:
    """The reward models of all runs."""

    def __init__(self, store: Store) -> None:
        """Nothing is read yet."""
        self._store = store

    async def committed(self, run: RunId, epoch: int) -> StoredCard | None:
        """The card of an epoch, or None if it was not committed."""
        key = keys.reward_model_card(run, epoch)
        if not await self._store.exists(key):
            return None
        raw = await self._store.get(key)
        return StoredCard(key, sha256(raw), RewardModelCard.from_bytes(raw))

    async def latest_before(self, run: RunId, epoch: int) -> StoredCard | None:
        """The newest card of an earlier epoch that can be read."""
        for number in range(epoch - 1, -1, -1):
            try:
                found = await self.committed(run, number)
            except ContractError as error:
                log.warning("card of an earlier epoch left out", run=run, epoch=number, error=str(error))
                continue
            if found is not None:
                return found
        return None

    async def weights(self, committed: StoredCard, observation: str) -> RewardWeights:
        """The checked weights of a committed card."""
        return load(await self._store.get(committed.card.weights_key, committed.card.weights_digest), observation)

    async def commit(self, card: RewardModelCard, weights: bytes, state_dict: bytes) -> StoredCard:
        """Write weights, then create the card. If another writer was faster, its card is returned."""
        prefix = keys.reward_model_prefix(card.run, card.epoch)
        await create_if_absent(self._store, card.weights_key, weights)  # the name is the digest: the same bytes
        failpoint("rewardmodel.after_weights")
        key = keys.reward_model_card(card.run, card.epoch)
        committed = await create_or_read(self._store, key, card.to_bytes())
        if not committed.created:
            return StoredCard(key, committed.digest, RewardModelCard.from_bytes(committed.data))
        failpoint("rewardmodel.after_card")
        await self._store.put(f"{prefix}rm.safetensors", weights)
        await self._store.put(f"{prefix}rm.pt", state_dict)
        return StoredCard(key, committed.digest, card)


def history(newest: StoredCard | None) -> list[RewardModelRef]:
    """The good models before the next one, oldest first: those the newest card knows, and itself if it passed."""
    if newest is None:
        return []
    own = [newest.reference] if newest.card.gates_passed else []
    return [*newest.card.history, *own][-MAX_HISTORY:]
