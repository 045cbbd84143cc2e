"""A guided run from its configuration to the learner, the evaluation and the exported policy."""

from concurrent.futures import Future

import numpy as np
import pytest

from cli.policy.policy_file import policy_from
from services.trainer.driver.session import TrainingSession
from services.trainer.driver.session_factory import create_evaluation
from services.trainer.env.who_acts import SuggestionSource
from services.trainer.planning.assembly import asked_modes
from services.trainer.planning.question import AnswerSource, ModelAnswer, Question, answered
from services.trainer.rl.epoch_plan import EpochPlan
from services.trainer.rl.planning_process import PlanningProcess
from services.trainer.rl.rllib_env import RLlibVectorEnv
from services.trainer.rl.session_config import SESSION_CONFIG, TrainingSessionConfig
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig
from shared.game.observation import with_counters
from shared.game.observation.with_guidance import NAMES, SIZE
from tests.rules import RulesServer
from tests.unit.planning.patient_training import answered_modes, iterate_until
from tests.unit.planning.threaded_models import planner_file

SMALL = {
    "world": "garden", "env_runners": 0, "envs_per_runner": 2, "batch_size": 256, "epoch_steps": 512,
    "episode_length": 300,
}  # fmt: skip
ALWAYS_DOWN = '{"action": "down", "scene": "x", "confidence": 1}'


def config(**guidance: object) -> TrainingSessionConfig:
    run = RunConfig.model_validate({**SMALL, "guidance": {"mode": "model", **guidance}})
    return TrainingSessionConfig(RunId("play"), run)


class Advised(RLlibVectorEnv):
    """Games whose model answers immediately."""

    def connect_models(self) -> AnswerSource:
        class Down:
            def submit(self, question: Question) -> "Future[ModelAnswer]":
                return answered(ModelAnswer("answered", ALWAYS_DOWN))

        return Down()


def guides(games: RLlibVectorEnv) -> list[SuggestionSource]:
    return [session.guide for session in games._open_games().sessions if session.guide is not None]


def test_bonus_is_a_reward_term_within_its_share_of_the_return() -> None:
    games = Advised({SESSION_CONFIG: config(text_share=0.2, bonus_share=0.5, text_bonus=0.3), "num_envs": 2})
    games.begin_epoch(EpochPlan(0))
    seen = [games.reset()[0]]
    paid, bonuses = 0.0, 0.0
    for step in range(300):  # the length of an episode
        observations, rewards, *_ = games.step(np.array([2, step % 5]))
        seen.append(observations)
        paid += float(rewards.sum())
        bonuses = max(bonuses, *(guide.paid for guide in guides(games)))
    summaries = games.collect(final=True).summaries
    games.close()
    assert seen[0].shape == (2, with_counters.SIZE + SIZE)
    assert any(part[:, -SIZE:].any() for part in seen)
    assert sum(summary.reward for summary in summaries) == pytest.approx(paid, rel=1e-5)
    assert any(summary.complete for summary in summaries)
    for summary in summaries:
        game = summary.reward - summary.terms["guidance"]
        assert not summary.complete or 0 <= summary.terms["guidance"] <= 0.5 * max(0.0, game) + 1e-6
        assert summary.facts["suggestions_asked"] >= summary.facts["suggestions_shown"] > 0
    assert sum(summary.facts["suggestions_taken"] for summary in summaries) > 0
    assert bonuses > 0


def test_run_without_guidance_sees_and_reports_none() -> None:
    run = RunConfig.model_validate(SMALL)
    assert asked_modes(run) == ()
    games = RLlibVectorEnv({SESSION_CONFIG: TrainingSessionConfig(RunId("play"), run), "num_envs": 2})
    games.begin_epoch(EpochPlan(0))
    assert games.reset()[0].shape == (2, with_counters.SIZE)
    games.step(np.zeros(2, int))
    (first, _) = games.collect(final=True).summaries
    games.close()
    assert "guidance" not in first.terms
    assert not [name for name in first.facts if name.startswith("suggestions")]


def test_guidance_needs_features_and_names_its_routes() -> None:
    with pytest.raises(ValueError, match="guidance is shown beside features"):
        RunConfig.model_validate({**SMALL, "observation": "pixels/v1", "guidance": {"mode": "model"}})
    assert asked_modes(config().run) == ("text", "vision")
    assert asked_modes(config(vision_share=0).run) == ("text",)


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.timeout(180)
@pytest.mark.filterwarnings("ignore")  # Ray's own, on every start
def test_session_learns_with_suggestions_and_is_evaluated_without() -> None:
    training = config(text_share=0.2, wait_s=5.0)
    with RulesServer() as server:
        session = TrainingSession(
            training, RLlibVectorEnv, PlanningProcess(planner_file(server.url), RunId("play"), None)
        )
        session.begin(lambda numbers: EpochPlan(0), 0)
        iterate_until(session, lambda: answered_modes(session) >= {"text", "vision"})
        iterate_until(session, lambda: any(summary.facts["suggestions_shown"] for summary in session.summaries))
        session.collect(final=True)
    assert session.steps >= 2 * 256
    evaluation = create_evaluation(training)
    found = evaluation.run(session.network.pi, 0, 20)
    evaluation.close()
    assert "reward/guidance" not in found
    weights = {f"pi.{name}": tensor.numpy() for name, tensor in session.network.pi.state_dict().items()}
    session.close()
    policy = policy_from(weights, {"observation": "obs/v2", "guided": True})
    assert policy.about["features"][-SIZE:] == list(NAMES)
    seen = np.zeros(len(policy.about["features"]), np.float32)
    assert policy.step(seen, policy.first_memory())[0].shape == (8,)
