"""One trial: one arm with one seed. `zelda study` starts `python -m studies.trial FOLDER ARM WORLD SEED`, one per core.

A trial runs the ring in one process, on a directory store: the code of trainer, judge, reward model and coordinator
without bus and services. On a small machine this halves the time, because the start-up, polling and waiting of the
services take longer than their work. A trial resumes from its last checkpoint.
"""

import json
import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from services.coordinator.readmodels.imitation import read_imitation
from services.coordinator.readmodels.run_views import RunViewReader
from services.coordinator.readmodels.score_counters import ScoreCounters
from services.trainer.driver.blocking_store import BlockingStore
from services.trainer.driver.driver_store import DriverStore
from services.trainer.driver.epoch_runner import EpochRunner
from services.trainer.driver.heartbeat import HeartbeatThread
from services.trainer.driver.session_factory import create_evaluation, create_session, stop_ray
from services.trainer.rl.rllib_env import RLlibVectorEnv
from services.trainer.rl.session_config import TrainingSessionConfig
from services.trainer.settings import DriverGroup
from shared.config.settings import LogSettings, StoreSettings
from shared.contracts.epoch import (
    ArchiveDemonstrations,
    ArchiveRef,
    EpochFinishedRecord,
    EpochStart,
    Imitation,
    RewardModelRef,
)
from shared.contracts.run import PlannerConfig, RunConfig, RunRecord
from shared.process.exits import flush_and_exit
from shared.state.runs import RunRecords
from shared.store import keys
from shared.store.create import create_or_read
from shared.store.open import open_store
from shared.store.port import AlreadyExists, NotFound, Store
from shared.telemetry.logging import setup_logging
from studies.arms import ARMS, Arm
from studies.asked_models import asked_models
from studies.curves import LABEL_ACCURACY, SUGGESTIONS
from studies.explored.folder import ExploredPathFolder
from studies.judged_env import JudgedEnv
from studies.judges.bank import Bank
from studies.labels.bank_model import BankRewardModel
from studies.labels.bank_store import bank_store
from studies.labels.labelers import JudgeLabeler, Labeler, NoShaping, OracleLabeler, RewardModelSource, ShuffledLabeler
from studies.labels.noise import NoisyLabeler
from studies.plan import StudyPlan, Trial
from studies.random_model import RandomRewardModel
from studies.whole_file import write_whole

CURVE_METRICS = (
    "milestones_share_mean",
    "milestones_mean",
    "milestones_max",
    "return_mean",
    "finished_mean",
    "rooms_mean",
    "tiles_mean",
)

RESTARTED_SHARE = 0.5  # unless the study sets another one


def trial_config(plan: StudyPlan, trial: Trial) -> RunConfig:
    """Return the configuration of a trial: the one of the study with the changes of the arm."""
    arm, run = ARMS[trial.arm], plan.run_of(trial)
    changes: dict[str, Any] = {"rnd": arm.curiosity, "rewards": arm.rewards or run.rewards}
    if arm.view is not None:
        changes["ppo"] = run.ppo.model_copy(update={"curiosity_view": arm.view})
    if arm.shaping in ("none", "bank"):  # its own segments get no labels
        changes["sampling"] = run.sampling.model_copy(update={"share": 0.0, "milestones": False, "budget": 1})
    if arm.shaping == "none":
        changes["shaping"] = run.shaping.model_copy(update={"mode": "none"})
    return run.model_copy(update=changes | _assistance(arm, run) | _techniques(arm, run))


def _assistance(arm: Arm, run: RunConfig) -> dict[str, Any]:
    """Who acts or advises beside the policy."""
    changes: dict[str, Any] = {}
    if arm.planner:
        changes["planner"] = PlannerConfig(mode="rules")
    if arm.options:
        changes["options"] = "options/v1"
    if arm.guidance:
        changes["guidance"] = run.guidance.model_copy(update={"mode": "model"})
    return changes


def _techniques(arm: Arm, run: RunConfig) -> dict[str, Any]:
    """What the policy sees and learns from beside its own play from the true start."""
    changes: dict[str, Any] = {}
    share = run.restarts.share or RESTARTED_SHARE
    if arm.imitation != "none":
        changes["imitation"] = run.imitation.model_copy(update={"mode": arm.imitation, "source": arm.source})
    if arm.backward:
        backward = {"share": share, "mode": "backward", "selection": "judges"}
        changes["restarts"] = run.restarts.model_copy(update=backward)
    if arm.restarts != "none":
        drawn = {"share": share, "selection": arm.restarts}
        changes["restarts"] = run.restarts.model_copy(update=drawn)
    if arm.memory:
        changes["memory"] = "gru/v1"
    if arm.window:
        changes["observation"] = "obs/v3"
    return changes


def reward_model_source(arm: Arm, store: Store, plan: StudyPlan, folder: Path) -> RewardModelSource:
    """Return the source of reward models for this arm. `folder` is the study's, `store` the trial's."""
    pooling = plan.pooling
    if arm.shaping == "none":
        return NoShaping()
    if arm.shaping == "random":
        return RandomRewardModel(store)
    if arm.shaping == "noisy":
        if plan.labels.noise is None:
            raise ValueError(f"the plan of {folder} has no noise for {arm.name}: start the study with `zelda study`")
        return NoisyLabeler(store, pooling, plan.labels.noise)
    if arm.bank is not None:
        return BankRewardModel(store, bank_store(folder), Bank.load(), arm.bank, pooling)
    labelers: dict[str, type[Labeler]] = {
        "judges": JudgeLabeler,
        "shuffled": ShuffledLabeler,
        "oracle": OracleLabeler,
    }
    return labelers[arm.shaping](store, pooling)


def whole_episode(episode_length: int, epoch_steps: int) -> int:
    """Evaluation plays whole episodes: a limit by the epoch's length could make long worlds unfinishable."""
    return episode_length


def store_of(folder: Path, trial: Trial) -> Path:
    """The directory store of a trial in the folder of its study."""
    return folder / "stores" / trial.name


class Pinned(NamedTuple):
    """What the epoch before leaves to the next one's order."""

    model: RewardModelRef | None = None
    archive: ArchiveRef | None = None
    imitation: Imitation | None = None
    demonstrations: ArchiveDemonstrations | None = None


class TrialRunner:
    """Runs the epochs of one trial."""

    def __init__(self, folder: Path, plan: StudyPlan, trial: Trial, driver: DriverGroup) -> None:
        """`folder` is the study's."""
        arm = ARMS[trial.arm]
        self.run = trial.name
        self.config = trial_config(plan, trial)
        settings = StoreSettings(url=f"file://{store_of(folder, trial).absolute()}")
        self.blocking = BlockingStore(open_store(settings))
        self.store = self.blocking.store
        self.reward_models = reward_model_source(arm, self.store, plan, folder)
        driver_store = DriverStore(self.blocking, self.run, f"{self.run}-{os.getpid()}")
        training = TrainingSessionConfig.of(self.run, self.config, driver, settings)
        session = create_session(training, driver, JudgedEnv if arm.direct else RLlibVectorEnv)
        evaluation = create_evaluation(training)
        self.runner = EpochRunner(
            driver_store,
            HeartbeatThread(driver_store, None),
            session,
            evaluation,
            evaluation_limit=whole_episode,
            explored_paths=None if plan.explored is None else ExploredPathFolder(Path(plan.explored)),
        )

    def run_epochs(self) -> list[dict[str, float]]:
        """Run all epochs; return one row of metrics per epoch."""
        record = self.blocking.wait(self._record())
        pinned, rows = Pinned(), []
        for epoch in range(self.config.planned_epochs or 1):
            finished = self._epoch(epoch, pinned)
            rows.append(curve_row(finished))
            pinned = self.blocking.wait(self._after(record, finished))  # the store's locks belong to its own event loop
        accuracy = self.blocking.wait(self.reward_models.label_accuracy(record))
        if accuracy is not None:
            rows[-1][LABEL_ACCURACY] = accuracy
        return rows

    def close(self) -> None:
        """Stop the emulators and Ray."""
        self.runner.close()
        stop_ray()

    async def _after(self, record: RunRecord, finished: EpochFinishedRecord) -> Pinned:
        """Label the epoch, and train and select what the next one learns from."""
        model = await self.reward_models.next_model(record, finished)
        view = await RunViewReader(self.store).read(record)
        imitation = await read_imitation(ScoreCounters(self.store), view)
        return Pinned(model, finished.archive, imitation, finished.demonstrations)

    def _epoch(self, epoch: int, pinned: Pinned) -> EpochFinishedRecord:
        key = keys.epoch_finished(self.run, epoch)
        try:
            return EpochFinishedRecord.from_bytes(self.blocking.get(key))
        except NotFound:
            self.runner.run(self._epoch_start(epoch, pinned))
        return EpochFinishedRecord.from_bytes(self.blocking.get(key))

    def _epoch_start(self, epoch: int, pinned: Pinned) -> EpochStart:
        """Create the start record of the epoch, or return the one written before a crash."""
        key = keys.epoch_start(self.run, epoch)
        start = EpochStart(
            run=self.run,
            epoch=epoch,
            fence=0,
            config=self.config,
            reward_model=pinned.model,
            archive=pinned.archive,
            imitation=pinned.imitation,
            demonstrations=pinned.demonstrations,
            created=datetime.now(UTC),
        )
        committed = self.blocking.wait(create_or_read(self.store, key, start.to_bytes()))
        return EpochStart.from_bytes(committed.data)

    async def _record(self) -> RunRecord:
        runs, now = RunRecords(self.store), datetime.now(UTC)
        record = RunRecord(run=self.run, revision=0, state="running", config=self.config, created=now, updated=now)
        try:
            await runs.create(record)
        except AlreadyExists:
            return await runs.latest(self.run)
        return record


def curve_row(finished: EpochFinishedRecord) -> dict[str, float]:
    """Return the metrics of an epoch that curves are drawn from."""
    evaluation = finished.evaluation or {}
    row = {f"evaluation/{name}": evaluation[name] for name in CURVE_METRICS if name in evaluation}
    row |= {f"training/{name}": finished.metrics[name] for name in CURVE_METRICS if name in finished.metrics}
    shaped = finished.reward_model is not None
    lifetime = finished.metrics["lifetime_steps"]
    if finished.assistance is not None:
        row |= {f"{SUGGESTIONS}{name}": float(count) for name, count in finished.assistance.suggestions.items()}
    return row | {"epoch": float(finished.epoch), "steps": lifetime, "shaped": float(shaped)}


def main(argv: list[str]) -> int:
    """Run one trial and write its rows of metrics."""
    folder, trial = Path(argv[0]), Trial(argv[1], argv[2], int(argv[3]))
    plan = StudyPlan.load(folder)
    target = plan.result_file(folder, trial)
    if target.exists():
        return 0
    setup_logging("study", LogSettings(level="warning"))
    with asked_models(ARMS[trial.arm], plan.labels.planner_file) as driver:
        runner = TrialRunner(folder, plan, trial, driver)
        try:
            rows = runner.run_epochs()
        finally:
            runner.close()
    write_whole(target, json.dumps(rows) + "\n")
    shutil.rmtree(
        store_of(folder, trial) / "episodes", ignore_errors=True
    )  # hundreds of segments; curve, models and cards remain
    return 0


if __name__ == "__main__":
    flush_and_exit(main(sys.argv[1:]))
