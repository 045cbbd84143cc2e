"""A run with options from its configuration to the learner: action space, choices as rows, checkpoints, evaluation."""

from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from pydantic import ValidationError
from ray.rllib.core import DEFAULT_MODULE_ID

from services.trainer.driver.session import TrainingSession
from services.trainer.driver.session_factory import create_evaluation
from services.trainer.options.option_sets import choice_names
from services.trainer.rl.env_runner import Rollout
from services.trainer.rl.epoch_plan import EpochPlan
from services.trainer.rl.rllib_env import RLlibVectorEnv
from services.trainer.rl.session_config import SESSION_CONFIG, TrainingSessionConfig
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig
from shared.errors import Permanent

NAMES = choice_names("options/v1")
SMALL: dict[str, Any] = {
    "world": "garden",
    "env_runners": 0,
    "envs_per_runner": 2,
    "batch_size": 256,
    "epoch_steps": 512,
    "episode_length": 300,
}


def config(options: str = "options/v1") -> TrainingSessionConfig:
    return TrainingSessionConfig(RunId("play"), RunConfig.model_validate({**SMALL, "options": options}))


@pytest.mark.parametrize("more", [{"planner": {"mode": "rules"}}, {"guidance": {"mode": "model"}}])
def test_options_exclude_planner_and_guidance(more: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"options need planner\.mode none and guidance\.mode none"):
        RunConfig.model_validate({**SMALL, "options": "options/v1", **more})


def test_environments_mark_the_steps_that_the_policy_chose() -> None:
    games = RLlibVectorEnv({SESSION_CONFIG: config(), "num_envs": 2})
    assert games.single_action_space == spaces.Discrete(len(NAMES))
    games.begin_epoch(EpochPlan(0))
    observations, _ = games.reset()
    rng, rollout = np.random.default_rng(0), Rollout(observations, np.zeros(2, np.bool_), ["a", "b"])
    for _ in range(200):
        chosen = rng.integers(8, len(NAMES), 2)
        rollout.add(chosen, np.zeros(2, np.float32), games.step(chosen), games.acted, games.held)
    chunks = rollout.chunks()
    decided = np.concatenate([np.asarray(chunk.get_extra_model_outputs("acted")) for chunk in chunks])
    assert len(decided) == 400, "every step of the game counts"
    summaries = games.collect(final=True).summaries
    games.close()
    assert decided.sum() == sum(summary.facts["options_begun"] for summary in summaries)
    assert 0.02 < decided.mean() < 0.9
    assert all(summary.facts["option_steps_share"] == 1 for summary in summaries), "only macros were chosen"


def test_a_run_without_options_has_neither_choices_nor_marks() -> None:
    games = RLlibVectorEnv({SESSION_CONFIG: config("none"), "num_envs": 2})
    games.begin_epoch(EpochPlan(0))
    games.reset()
    games.step(np.zeros(2, int))
    assert games.single_action_space == spaces.Discrete(8)
    assert games.acted is None
    assert "options_begun" not in games.collect(final=True).summaries[0].facts
    games.close()


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.timeout(240)
@pytest.mark.filterwarnings("ignore")  # Ray's own, on every start
def test_session_learns_choices_and_is_evaluated_with_options() -> None:
    session = TrainingSession(config(), RLlibVectorEnv)
    session.begin(lambda numbers: EpochPlan(0), 0)
    before = session.network.pi[-1].weight.detach().clone()
    seen: list[int] = []
    build = type(session.learner.builder).__call__

    def counted(builder: Any, **kwargs: Any) -> Any:
        batch = build(builder, **kwargs)
        seen.append(len(batch[DEFAULT_MODULE_ID]["actions"]))
        return batch

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(session.learner.builder), "__call__", counted)
        session.iterate()
        session.iterate()
    assert session.learner.builder.options
    assert session.steps >= 2 * 256, "an epoch counts steps of the game"
    assert 0 < sum(seen) < session.steps, "the learner's rows are choices"
    assert session.figures["policy_steps_share"] < 1
    assert before.shape[0] == len(NAMES)
    assert not torch.equal(before[8:], session.network.pi[-1].weight.detach()[8:]), "macros are learnt"
    saved = session.save()
    evaluation = create_evaluation(config())
    found = evaluation.run(session.network.pi, 0, 60)
    evaluation.close()
    assert found["options_begun_mean"] > 0, "results with options are of assisted play, and say so"
    session.close()
    plain = TrainingSession(config("none"), RLlibVectorEnv)
    with pytest.raises(Permanent, match="trained on options 'options/v1', this run uses 'none'"):
        plain.load(saved)
    plain.close()
