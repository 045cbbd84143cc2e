"""Minibatches have the rows that RLlib's own iterator would draw with the same random numbers."""

import numpy as np
import pytest
import torch
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch
from ray.rllib.utils.minibatch_utils import MiniBatchCyclicIterator

from services.trainer.rl.batch import explained, minibatch_pieces, minibatch_rows, select
from services.trainer.rl.learners.minibatch_share import MinibatchShare, predicted_rows
from services.trainer.rl.networks.policy_network import piece_begins


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


def test_minibatches_of_pieces_have_about_as_many_rows() -> None:
    begins = np.concatenate([piece_begins(steps) for steps in (320, 300)])  # of 32 rows, the last one of 12
    found = [len(rows) for rows in minibatch_pieces(begins, size=64, epochs=1, shuffle=False)]
    assert found == [64] * 9 + [44]


def test_a_critic_explains_what_varies_in_its_targets() -> None:
    targets = np.array([1, 2, 3, 4], np.float32)
    assert explained(targets, targets + 5) == pytest.approx(1.0), "a constant error is none of variance"
    assert explained(targets, np.zeros(4, np.float32)) == pytest.approx(0.0)
    assert explained(targets, -targets) == pytest.approx(-3.0)
    assert explained(np.ones(4, np.float32), targets) == 0.0
    assert explained(targets[:0], targets[:0]) == 0.0


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="no minibatches"):
        next(minibatch_rows(0, size=4, epochs=1, shuffle=True))


@pytest.mark.parametrize("rows", [1, 2, 7, 64])
@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("predictor_share", [0.0, 0.25, 1.0])
def test_the_shares_of_all_learners_add_up_to_the_whole(rows: int, ranks: int, predictor_share: float) -> None:
    minibatch = np.random.default_rng(rows).permutation(100)[:rows]
    losses = np.random.default_rng(0).random(100)
    shares = [MinibatchShare.of(minibatch, rank, ranks, predictor_share) for rank in range(ranks)]
    whole = sum(share.weight * losses[share.rows].mean() for share in shares)
    assert whole == pytest.approx(losses[minibatch].mean())
    predicted = [losses[share.rows[: share.predicted]].mean() for share in shares]
    kept = minibatch[: predicted_rows(rows, predictor_share)]
    by_weight = [share.weight * share.predictor_ratio for share in shares]
    assert np.dot(by_weight, predicted) == pytest.approx(losses[kept].mean())
    assert np.dot([share.predicted_weight for share in shares], predicted) == pytest.approx(losses[kept].mean())
