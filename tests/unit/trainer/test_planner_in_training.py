"""A run with a planner from its configuration to the learner: masks, figures, and an evaluation without assistance."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import ray

from bench.assisted_play.puzzle_env import PuzzleEnv
from services.trainer.domain.assistance import takeover_fact
from services.trainer.driver.session import TrainingSession
from services.trainer.driver.session_factory import create_evaluation
from services.trainer.env.config import EnvConfig
from services.trainer.rl.epoch_plan import EpochPlan
from services.trainer.rl.planning_process import NAME, PlanningProcess
from services.trainer.rl.rllib_env import RLlibVectorEnv
from services.trainer.rl.session_config import SESSION_CONFIG, TrainingSessionConfig
from shared.config.settings import StoreSettings
from shared.contracts.driver import ENDINGS, NEEDS, ModelCalls, QuestionMode
from shared.contracts.ids import RunId
from shared.contracts.run import PlannerConfig, RunConfig
from tests.rules import RulesServer
from tests.servers import free_ports
from tests.unit.planning.patient_training import answered_modes, iterate_until
from tests.unit.planning.threaded_models import planner_file

RUN = RunConfig(world="garden", env_runners=0, envs_per_runner=2, batch_size=256, epoch_steps=512, episode_length=300)
FACTS = {
    "planner_steps_share", "planner_wait_steps", "plans_late", "plans_missing", "takeovers",
    *(takeover_fact(need, ending) for need in NEEDS for ending in ENDINGS),
}  # fmt: skip


def config(mode: str) -> TrainingSessionConfig:
    planner = PlannerConfig.model_validate({"mode": mode, "cool_down_steps": 10})
    return TrainingSessionConfig(RunId("play"), RUN.model_copy(update={"planner": planner}))


def played(mode: str, steps: int) -> tuple[np.ndarray, list[dict[str, float]]]:
    """Who acted in each step of two environments that do nothing themselves, and the episodes' facts."""
    games = PuzzleEnv({SESSION_CONFIG: config(mode), "num_envs": 2})
    games.begin_epoch(EpochPlan(0))
    games.reset()
    acted = []
    for _ in range(steps):
        games.step(np.zeros(2, int))
        acted.append(np.ones(2, bool) if games.acted is None else games.acted)
    facts = [dict(summary.facts) for summary in games.collect(final=True).summaries]
    games.close()
    return np.array(acted), facts


def asked(calls: Mapping[QuestionMode, ModelCalls]) -> int:
    """Questions of all modes and outcomes."""
    return sum(sum(one.outcomes.values()) for one in calls.values())


def test_planner_of_the_configuration_acts_and_is_reported() -> None:
    acted, facts = played("rules", 120)
    assert 10 < np.count_nonzero(~acted[:, 0]) < 60
    assert all(found.keys() >= FACTS for found in facts)
    assert facts[0]["takeovers"] == 1
    assert facts[0]["takeovers_puzzle_cleared"] == 1
    assert facts[0]["planner_steps_share"] == pytest.approx(np.mean(~acted[:, 0]))


def test_run_without_a_planner_has_neither_mask_nor_figures() -> None:
    games = RLlibVectorEnv({SESSION_CONFIG: config("none"), "num_envs": 2})
    games.begin_epoch(EpochPlan(0))
    games.reset()
    games.step(np.zeros(2, int))
    assert games.acted is None
    assert all(session.takeover is None for session in games._open_games().sessions)
    (first, _) = games.collect(final=True).summaries
    assert not first.facts.keys() & FACTS
    games.close()


def test_evaluation_plays_without_the_planner() -> None:
    games = create_evaluation(config("rules"))._make(1)
    games.begin_epoch(EpochPlan(0))
    games.reset()
    assert games._open_games().sessions[0].takeover is None
    games.close()


def test_environments_of_a_run_take_no_planner_settings() -> None:
    assert EnvConfig.of_run(config("rules").run) == EnvConfig.of_run(config("none").run)


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.timeout(180)
@pytest.mark.filterwarnings("ignore")  # Ray's own, on every start
def test_session_learns_from_the_policys_steps_alone() -> None:
    session = TrainingSession(config("rules"), PuzzleEnv)
    session.begin(lambda numbers: EpochPlan(0), 0)
    session.iterate()
    assert session.steps >= RUN.batch_size
    assert 0 < session.figures["policy_steps_share"] < 1
    assert "policy_loss" in session.figures
    session.iterate()
    assert session.figures["policy_steps_share"] > 0.5
    session.collect(final=True)
    assert all(summary.facts["takeovers"] >= 1 for summary in session.summaries)
    session.close()


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.timeout(180)
@pytest.mark.filterwarnings("ignore")  # Ray's own, on every start
def test_models_plan_in_training_through_the_planning_process(tmp_path: Path) -> None:
    store = StoreSettings(url=f"file://{tmp_path}")
    with RulesServer() as server:
        planning = PlanningProcess(planner_file(server.url), RunId("play"), store)
        session = TrainingSession(replace(config("model"), store=None), PuzzleEnv, planning)
        session.begin(lambda numbers: EpochPlan(0), 0)
        iterate_until(session, lambda: "puzzle" in answered_modes(session))
        iterate_until(session, lambda: any(summary.facts["planner_steps_share"] for summary in session.summaries))
        iterate_until(session, lambda: "puzzle" in getattr(session.assistance(final=False), "calls", {}))
        iterate_until(session, lambda: asked(session.model_calls) > 2)
        session.collect(final=True)
        assert server.count("rules_requests_total") >= session.model_calls["puzzle"].outcomes["answered"] >= 1
        helped, played = session.assistance(final=True), list(session.summaries)
        session.begin(lambda numbers: EpochPlan(1), 1)
        newest = session.assistance(final=False)
        assert newest is None or asked(newest.calls) <= 2, "the last epoch's are not reported; each game asked one late"
        assert asked(session.model_calls) <= 2
        session.close()
    assert max(summary.facts["takeovers_puzzle_cleared"] for summary in played) > 0
    assert helped is not None
    assert helped.takeovers["puzzle"]["cleared"] >= 1
    assert helped.calls["puzzle"].outcomes["answered"] >= 1
    assert sum(helped.takeovers["puzzle"].values()) == sum(found.facts["takeovers"] for found in played)
    assert max(summary.facts["planner_steps_share"] for summary in played) > 0
    assert list(tmp_path.glob("episodes/answers/play/epoch_0/*.jsonl.gz")), "the answers are kept when the process ends"


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
@pytest.mark.timeout(180)
@pytest.mark.filterwarnings("ignore")  # Ray's own, on every start
def test_training_goes_on_without_models_and_planning_process() -> None:
    planning = PlanningProcess(planner_file(f"http://127.0.0.1:{free_ports(1)[0]}/v1"), RunId("play"), None)
    session = TrainingSession(config("model"), PuzzleEnv, planning)
    session.begin(lambda numbers: EpochPlan(0), 0)
    iterate_until(session, lambda: session.model_calls["puzzle"].outcomes.get("unavailable", 0) >= 1)
    ray.kill(ray.get_actor(NAME), no_restart=False)
    for _ in range(3):
        session.iterate()
        begun = time.monotonic()
        assert session.assistance(final=False) is not None
        assert time.monotonic() - begun < 1, "a report waits for no process"
    assert session.steps >= 4 * RUN.batch_size
    session.collect(final=True)
    assert sum(summary.facts["plans_missing"] for summary in session.summaries) >= 1
    assert sum(summary.facts["planner_steps_share"] for summary in session.summaries) == 0
    session.close()
