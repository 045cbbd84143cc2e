"""Random play in one environment that fills a run's archive, and a store of its trajectories in memory, with legs."""

import numpy as np

from services.trainer.documents import StoredObject
from services.trainer.env.game_session import GameSession
from services.trainer.restarts.plan import RestartPlan
from services.trainer.restarts.run_archive import RunArchive
from services.trainer.restarts.trajectory import Trajectory
from services.trainer.rl.epoch_plan import EpochPlan, RolloutResult
from services.trainer.rl.rllib_env import RLlibVectorEnv
from services.trainer.rl.session_config import SESSION_CONFIG, TrainingSessionConfig
from services.trainer.state_archive.archive import PathPart
from services.trainer.state_archive.cell import ArchiveCell, cell_of
from services.trainer.state_archive.goal import ArchiveGoal, TrajectoryLeg
from shared.contracts.base import sha256
from shared.contracts.epoch import ArchiveRef, TrajectoryRef
from shared.contracts.ids import Digest, RunId
from shared.contracts.run import RunConfig
from shared.errors import DigestMismatch
from shared.game.recording.segment import pack_state
from shared.store import keys

RUN = RunConfig(world="garden", env_runners=0, envs_per_runner=1, batch_size=256, epoch_steps=512, frame_skip=12)
CONFIG = TrainingSessionConfig(RunId("play"), RUN)
STEPS = 120


def leg(begin: int, end: int) -> TrajectoryLeg:
    """A leg of a trajectory between two of its steps."""
    return TrajectoryLeg(begin, end, ArchiveGoal(ArchiveCell(0, 0, 0, 0, ())))


def played_path(session: GameSession) -> Trajectory:
    """The episode that this session has played from the true start under seed 1, as a trajectory of an archive."""
    state, cell = session.emulator.save(), cell_of(session.state, session.counters.values)
    return Trajectory(7, cell, (PathPart(1, bytes(session.episode.actions)),), pack_state(state), sha256(state))


class ArchivedPlay:
    """Two epochs of random play in one environment: what was seen and done, and the archive that they fill."""

    def __init__(self) -> None:
        self.games = RLlibVectorEnv({SESSION_CONFIG: CONFIG, "num_envs": 1})
        self.archive = RunArchive()
        self.seen: list[list[np.ndarray]] = []
        self.actions: list[list[int]] = []

    def epoch(self, number: int) -> None:
        starts, paths = self.archive.draw((0, number), 0.9 if number else 0.0, "novelty")
        self.play(EpochPlan(number, restarts=RestartPlan(tuple(starts), paths, self.archive.known)))

    def play(self, plan: EpochPlan) -> RolloutResult:
        rng = np.random.default_rng(plan.epoch)
        self.games.begin_epoch(plan)
        observation, _ = self.games.reset()
        self.seen.append([])
        self.actions.append([])
        for _ in range(STEPS):
            action = int(rng.integers(1, 5))
            self.seen[-1].append(observation[0].copy())
            self.actions[-1].append(action)
            observation, *_ = self.games.step(np.array([action]))
        result = self.games.collect(final=True)
        pack = self.archive.merge(result.states, result.visits)
        digest = Digest(sha256(str(plan.epoch).encode()))
        self.archive.append(ArchiveRef(key=f"models/{plan.epoch}", digest=digest), pack)
        return result

    def trajectory(self, entry: int) -> Trajectory:
        path = self.archive.archive.trajectory(self.archive.archive.entries[entry])
        return Trajectory.of(entry, path, self.archive.states[entry])


class TrajectoriesInMemory:
    """Trajectories in memory, each checked against its digest."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.reads = 0

    def read(self, reference: StoredObject) -> bytes:
        self.reads += 1
        data = self.objects[reference.key]
        if sha256(data) != reference.digest:
            raise DigestMismatch(f"{reference.key} is damaged")
        return data

    def save_trajectory(self, data: bytes, entry: int, steps: int) -> TrajectoryRef:
        digest = Digest(sha256(data))
        key = keys.trajectory(RunId("play"), entry, digest)
        self.objects[key] = data
        return TrajectoryRef(entry=entry, steps=steps, key=key, digest=digest)
