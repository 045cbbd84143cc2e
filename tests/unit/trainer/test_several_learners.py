"""Several learners learn what one learns from the same batch: equal shares, added gradients, the same steps.

The tests on Ray share their sessions: each replica is a process that starts for seconds.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import ray
import torch
from ray.rllib.core import DEFAULT_MODULE_ID

from services.trainer.driver.session import TrainingSession
from services.trainer.rl.batch import ADVANTAGES
from services.trainer.rl.epoch_plan import EpochPlan
from services.trainer.rl.learner import CuriosityPPOLearner
from services.trainer.rl.learners.minibatch_share import MinibatchShare
from services.trainer.rl.learners.replica import learner_state
from shared.contracts.learning.ppo import PpoConfig
from shared.errors import Fatal
from tests.unit.trainer.corridor_env import corridor_session
from tests.unit.trainer.test_learner_equals_stock import episodes, learner

RND = PpoConfig(curiosity_view="novelty/v1", curiosity=0.5, warm_up_steps=0, minibatch=250)
COUNTED_BATCHES = 3

on_ray = [
    pytest.mark.slow,
    pytest.mark.usefixtures("ray_cluster"),
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore"),  # Ray's own, on every start
]


@pytest.mark.parametrize(("rows", "ranks"), [(256, 2), (250, 3), (5, 4), (2, 3), (1, 4)])
def test_the_shares_of_all_learners_are_the_minibatch(rows: int, ranks: int) -> None:
    minibatch = np.random.default_rng(0).permutation(rows)
    shares = [MinibatchShare.of(minibatch, rank, ranks, 0.25) for rank in range(ranks)]
    assert sum(share.weight for share in shares) == pytest.approx(1)
    assert sum(share.predicted_weight for share in shares) == pytest.approx(1)
    assert sorted(row for share in shares if share.weight for row in share.rows) == list(range(rows))
    assert all(len(share.rows) for share in shares), "a learner without a row would have no gradient"


@pytest.mark.parametrize("ranks", [2, 3, 7])
def test_weighted_means_add_up_to_the_mean_of_all(ranks: int) -> None:
    losses, minibatch = np.random.default_rng(1).random(20), np.arange(20)[::-1]
    shares = [MinibatchShare.of(minibatch, rank, ranks, 0.25) for rank in range(ranks)]
    assert sum(losses[share.rows].mean() * share.weight for share in shares) == pytest.approx(losses.mean())
    predicted = [losses[share.rows[: share.predicted]].mean() * share.predicted_weight for share in shares]
    assert sum(predicted) == pytest.approx(losses[minibatch[:5]].mean())
    within = [share.predictor_ratio * share.weight for share in shares]
    assert within == pytest.approx([share.predicted_weight for share in shares]), "part of a loss of this weight"


class Rank:
    """The place of a learner among others, to whom it is not connected."""

    def __init__(self, rank: int, ranks: int) -> None:
        self.rank, self.ranks = rank, ranks


@pytest.mark.filterwarnings("ignore")  # Ray's own, on import and build
def test_the_gradients_of_all_shares_add_up_to_that_of_the_whole() -> None:
    """Of all parts of the loss: the predictor's has another share of the rows than the others."""
    made = learner(CuriosityPPOLearner, RND, lean=True, curiosity=True)
    network = made.module[DEFAULT_MODULE_ID].unwrapped()
    columns = made.builder(rl_module=made.module, episodes=episodes())[DEFAULT_MODULE_ID]

    def gradient(rows: dict[str, torch.Tensor]) -> torch.Tensor:
        network.zero_grad()
        found = network._forward_train(rows)
        made.compute_loss_for_module(module_id=DEFAULT_MODULE_ID, config=None, batch=rows, fwd_out=found).backward()
        return torch.cat([one.grad.reshape(-1) for one in network.parameters() if one.grad is not None])

    whole, losses = gradient(columns), made._drain_losses()
    shares, parts = [], []
    for rank in range(3):
        made.gradients = Rank(rank, 3)
        shares += [gradient(rows) for rows in made._shares(columns, [np.arange(len(columns[ADVANTAGES]))])]
        parts.append(made._drain_losses())
    torch.testing.assert_close(torch.stack(shares).sum(0), whole, rtol=1e-4, atol=1e-6)
    assert {name: sum(part[name] for part in parts) for name in losses} == pytest.approx(losses, rel=1e-4)
    torch.testing.assert_close(gradient(columns), whole)  # after the batch it is alone again


def replica_weights(session: TrainingSession) -> list[dict[str, torch.Tensor]]:
    """The networks of every replica after the last batch."""
    assert session.replicas is not None
    asked = [
        one.__ray_call__.remote(lambda replica: learner_state(replica._learner)[0]) for one in session.replicas._actors
    ]
    found: list[dict[str, torch.Tensor]] = ray.get(asked)
    return found


def played(learners: int, saved: bytes | None, hyper: PpoConfig = RND) -> TrainingSession:
    """A session that learned three batches from this checkpoint."""
    session = corridor_session(learners=learners, hyper=hyper)
    if saved is not None:
        session.load(saved)
    session.begin(lambda numbers: EpochPlan(0), 0)
    for _ in range(COUNTED_BATCHES):
        session.iterate()
    return session


@pytest.fixture(scope="module")
def saved() -> bytes:
    """A checkpoint of an untrained session."""
    session = corridor_session(hyper=RND)
    session.begin(lambda numbers: EpochPlan(0), 0)
    found = session.save()
    session.close()
    return found


@pytest.fixture(scope="module")
def alone(saved: bytes) -> Iterator[TrainingSession]:
    """A session with one learner."""
    session = played(1, saved)
    yield session
    session.close()


@pytest.fixture(scope="module")
def pair(saved: bytes) -> Iterator[TrainingSession]:
    """A session with two learners. The last test that uses it kills one."""
    session = played(2, saved)
    yield session
    session.close()


@pytest.fixture(scope="module")
def taken() -> Iterator[Any]:
    """An actor that takes all cores."""
    holder = ray.remote(num_cpus=ray.available_resources().get("CPU", 0))(Holder).remote()
    assert ray.get(holder.held.remote())
    yield holder
    ray.kill(holder)


@pytest.fixture(scope="module")
def trio(saved: bytes, taken: Any) -> Iterator[TrainingSession]:
    """A session with three learners, which started when all cores were taken."""
    assert ray.available_resources().get("CPU", 0) == 0
    session = played(3, saved)
    yield session
    session.close()


class TestOnRay:
    """With replicas in processes of their own."""

    pytestmark = on_ray

    @pytest.mark.parametrize(("session", "learners"), [("pair", 2), ("trio", 3)])
    def test_they_learn_what_one_learns(
        self, alone: TrainingSession, session: str, learners: int, request: pytest.FixtureRequest
    ) -> None:
        shared: TrainingSession = request.getfixturevalue(session)
        assert len(replica_weights(shared)) == learners - 1
        for name, tensor in alone.network.state_dict().items():
            other = shared.network.state_dict()[name]
            assert torch.allclose(tensor.double(), other.double(), atol=1e-5), name
        optimizers = [one.learner.get_optimizer(DEFAULT_MODULE_ID).state_dict()["state"] for one in (alone, shared)]
        for index, fields in optimizers[0].items():
            assert all(torch.allclose(tensor, optimizers[1][index][name], atol=1e-5) for name, tensor in fields.items())
        assert alone.figures.keys() == shared.figures.keys()
        for name, value in alone.figures.items():
            assert shared.figures[name] == pytest.approx(value, abs=1e-4), name

    def test_every_replica_makes_the_drivers_steps(self, trio: TrainingSession) -> None:
        own = trio.network.state_dict()
        replicas = replica_weights(trio)
        assert len(replicas) == 2
        for weights in replicas:
            assert all(torch.equal(tensor, own[name]) for name, tensor in weights.items())

    def test_they_need_no_core_beside_the_env_runners(self, taken: Any, trio: TrainingSession) -> None:
        """They compute while the env runners wait: a full cluster has room for them."""
        assert ray.get(taken.held.remote())
        assert ray.available_resources().get("CPU", 0) == 0
        assert len(replica_weights(trio)) == 2

    def test_a_lost_replica_ends_the_session_with_a_sentence(self, pair: TrainingSession) -> None:
        assert pair.replicas is not None
        ray.kill(pair.replicas._actors[0])
        with pytest.raises(Fatal, match="a learner process"):
            pair.iterate()


class Holder:
    """Takes all cores."""

    def held(self) -> bool:
        return True
