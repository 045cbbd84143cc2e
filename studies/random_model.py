"""The random reward model of a study: the control for the effect of shaping as such."""

from dataclasses import replace

import numpy as np

from shared import rewardnet
from shared.contracts.base import sha256
from shared.contracts.epoch import EpochFinishedRecord, RewardModelRef
from shared.contracts.ids import Digest
from shared.contracts.run import RunRecord
from shared.game.observation import counters
from shared.game.recording.segment import read_segment
from shared.rewardnet import Floats, RewardNet, RewardWeights
from shared.store import keys
from shared.store.port import Store
from studies.labels.labelers import Unlabelled

MEMBERS = 5


class RandomRewardModel(Unlabelled):
    """Untrained weights that stay the same in all epochs, with the inputs, size and scale of a trained model.

    It sees event counters, ignores those that the epoch's segments do not vary, and is standardised on their states.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    async def next_model(self, record: RunRecord, finished: EpochFinishedRecord) -> RewardModelRef | None:
        """Return the model, standardised on the states of the epoch; None if it has no segment."""
        archives = [await self.store.get(ref.key, ref.digest) for ref in finished.segments]
        states = [read_segment(archive).states_in(counters.VERSION) for archive in archives]
        if not states:
            return None
        weights = rewardnet.dump(random_model(np.concatenate(states), record.config.seed))
        key = f"{keys.reward_model_prefix(finished.run, finished.epoch)}rm.safetensors"
        await self.store.put(key, weights)
        digest = Digest(sha256(weights))
        return RewardModelRef(
            epoch=finished.epoch, weights_key=key, weights_digest=digest, card_key=key, card_digest=digest
        )


def random_model(states: Floats, seed: int) -> RewardWeights:
    """Random weights for `states` (N, counters.SIZE), over which the mean of the members has deviation 1.

    Trained members agree, so their mean keeps their deviation of 1. Random members do not, and need a larger scale.
    """
    mean, scale = rewardnet.input_statistics(states)
    drawn = rewardnet.random_weights(MEMBERS, seed, counters.VERSION)
    weights = rewardnet.standardise(replace(drawn, input_mean=mean, input_scale=scale), states)
    deviation = float(RewardNet(weights).forward(states).astype(np.float64).mean(axis=0).std())
    stretch = np.float32(1 / max(deviation, rewardnet.FLAT))
    return replace(
        weights,
        output_scale=(weights.output_scale * stretch).astype(np.float32),
        disagreement=weights.disagreement * float(stretch),
    )
