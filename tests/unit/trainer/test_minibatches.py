"""Minibatches have the rows that RLlib's own iterator would draw with the same random numbers."""

import numpy as np
import pytest
import torch
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch
from ray.rllib.utils.minibatch_utils import MiniBatchCyclicIterator

from services.trainer.rl.batch import minibatch_rows, select


@pytest.mark.parametrize(("steps", "size"), [(2_048, 512), (2_061, 512), (100, 512), (7, 3)])
@pytest.mark.parametrize("shuffle", [True, False])
def test_minibatches_have_the_rows_of_rllibs_iterator(steps: int, size: int, shuffle: bool) -> None:
    columns = {"obs": torch.rand(steps, 3), "actions": torch.arange(steps)}
    np.random.seed(4)
    theirs = MiniBatchCyclicIterator(
        MultiAgentBatch({"policy": SampleBatch(dict(columns))}, env_steps=steps),
        num_epochs=3,
        minibatch_size=size,
        shuffle_batch_per_epoch=shuffle,
    )
    wanted = [minibatch.policy_batches["policy"] for minibatch in theirs]
    np.random.seed(4)
    order = minibatch_rows(len(columns["obs"]), size=size, epochs=3, shuffle=shuffle)
    found = [select(columns, rows) for rows in order]
    assert len(found) == len(wanted)
    for ours, other in zip(found, wanted, strict=True):
        assert all(torch.equal(ours[name], other[name]) for name in columns)


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="no minibatches"):
        next(minibatch_rows(0, size=4, epochs=1, shuffle=True))
