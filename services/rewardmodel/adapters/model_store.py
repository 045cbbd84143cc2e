"""Stores reward models: commits new ones, and finds earlier ones to continue and to cite.

The weights are written first, under a key that contains their digest, so that two writers never overwrite each other.
Creating the card commits the model. The plain-named copies are for people and other tools.
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
from shared.state.documents import parse_document
from shared.store import keys
from shared.store.create import create_if_absent, create_or_read
from shared.store.port import Store

MAX_HISTORY: Final = 100

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StoredCard:
    """A committed card: its key, the SHA-256 of its bytes, and its content."""

    key: str
    digest: str
    card: RewardModelCard

    @property
    def reference(self) -> RewardModelRef:
        """The reference under which other services load the model."""
        return self.card.reference(self.key, self.digest)


class RewardModelStore:
    """The reward models of all runs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(self, run: RunId, epoch: int) -> StoredCard | None:
        """The committed card of an epoch, or None; raise ContractError if it is damaged."""
        key = keys.reward_model_card(run, epoch)
        if not await self._store.exists(key):
            return None
        raw = await self._store.get(key)
        return StoredCard(key, sha256(raw), parse_document(RewardModelCard, key, raw))

    async def latest_before(self, run: RunId, epoch: int) -> StoredCard | None:
        """The newest readable card of an earlier epoch."""
        for number in range(epoch - 1, -1, -1):
            try:
                stored = await self.find(run, number)
            except ContractError as error:
                log.warning("card skipped", run=run, epoch=number, error=str(error))
                continue
            if stored is not None:
                return stored
        return None

    async def load_weights(self, stored: StoredCard, observation: str) -> RewardWeights:
        """Load and check the weights of a card; raise NotFound, DigestMismatch or ContractError."""
        return load(await self._store.get(stored.card.weights_key, stored.card.weights_digest), observation)

    async def commit(self, card: RewardModelCard, weights: bytes, state_dict: bytes) -> StoredCard:
        """Write the weights, then create the card. The first commit wins: its card is returned."""
        prefix = keys.reward_model_prefix(card.run, card.epoch)
        await create_if_absent(self._store, card.weights_key, weights)  # the key is the digest: equal bytes
        failpoint("rewardmodel.after_weights")
        key = keys.reward_model_card(card.run, card.epoch)
        committed = await create_or_read(self._store, key, card.to_bytes())
        if not committed.created:
            return StoredCard(key, committed.digest, parse_document(RewardModelCard, key, committed.data))
        failpoint("rewardmodel.after_card")
        await self._store.put(f"{prefix}rm.safetensors", weights)
        await self._store.put(f"{prefix}rm.pt", state_dict)
        return StoredCard(key, committed.digest, card)


def passed_models(latest: StoredCard | None) -> list[RewardModelRef]:
    """References to the models that passed their gates, oldest first: the latest card's history, and itself if it
    passed."""
    if latest is None:
        return []
    own = [latest.reference] if latest.card.gates_passed else []
    return [*latest.card.history, *own][-MAX_HISTORY:]
