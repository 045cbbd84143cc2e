"""The environment of the arm `rules-direct`: the judge's score of a segment is a reward, paid at the segment's end.

Every segment is judged, not only the selected ones, by the code that labels the arm `judges`. Nothing is recorded.
"""

from collections import defaultdict
from typing import Final

import numpy as np
from numpy.typing import NDArray

from services.judge.runtime import rules_runtime
from services.trainer.domain.episodes import EpisodeName
from services.trainer.driver.blocking_store import BlockingStore
from services.trainer.env.config import EnvConfig
from services.trainer.recording.builder import CompletedSegment
from services.trainer.recording.config import RecordingConfig
from services.trainer.recording.recorder import RunnerRecorder
from services.trainer.rl.rllib_env import EpisodeRewarder, RLlibVectorEnv
from shared.contracts.base import sha256
from shared.contracts.envelope import wrap
from shared.contracts.events import SegmentReady
from shared.contracts.ids import Digest, EpisodeId
from shared.contracts.scores import SegmentScores
from shared.game.observation import counters
from shared.store import keys
from shared.store.memory import MemoryStore

DEVIATION: Final = 0.07
"""Deviation of the scores of segments of random play in garden (0.068). Divided by it, a score weighs as much as the
potential of a reward model, whose deviation is 1; undivided, the arm would lose by its scale alone."""


class SegmentJudge:
    """Scores segments with the rules judge, synchronously."""

    def __init__(self) -> None:
        self._store = BlockingStore(MemoryStore())
        self._runtime = rules_runtime(self._store.store)

    def score(self, segment: CompletedSegment) -> float:
        """Return the score in [0, 1]; 0 if the judge abstained."""
        facts, archive = segment.facts, segment.archive("share")
        run, epoch, key = facts["run"], facts["epoch"], segment.key
        data = SegmentReady(
            run=run,
            epoch=epoch,
            key=key,
            digest=Digest(sha256(archive)),
            episode=EpisodeId(facts["episode"]),
            segment=segment.name,
        )
        self._store.put(key, archive)
        self._store.wait(self._runtime.handlers.segment_ready(wrap(data, source="study")))
        score = keys.score(run, epoch, segment.name)
        found = SegmentScores.from_bytes(self._store.get(score))
        self._store.delete(key)
        self._store.delete(score)
        return found.weighted or 0.0

    def close(self) -> None:
        """End the judge's thread."""
        self._store.close()


class JudgingRecorder(RunnerRecorder):
    """Judges each completed segment instead of storing some. `pop` returns what an environment earned since."""

    def __init__(self, config: EnvConfig, settings: RecordingConfig) -> None:
        super().__init__(config, settings)
        self._judge = SegmentJudge()
        self._earned: dict[int, float] = defaultdict(float)

    def pop(self, env: int) -> float:
        """Return the sum of the scores since the last call."""
        return self._earned.pop(env, 0.0)

    def close(self, patience_s: float = 15.0) -> None:
        """See RunnerRecorder."""
        super().close(patience_s)
        self._judge.close()

    def _sample(self, segment: CompletedSegment) -> None:
        env = EpisodeName.parse(segment.facts["episode"]).env
        with self._lock:
            self._earned[env] += self._judge.score(segment)


class SegmentScoreRewarder:
    """Adds `coefficient` times the score over DEVIATION to the reward of a segment's last step."""

    view: str = counters.VERSION

    def __init__(self, recorder: JudgingRecorder, envs: int, coefficient: float) -> None:
        self._recorder, self._factor, self._sums = recorder, coefficient / DEVIATION, np.zeros(envs)

    def begin(self, observations: NDArray[np.float32]) -> None:
        """Begin an episode in every environment."""
        self._sums[:] = 0.0

    def advance(
        self,
        observations: NDArray[np.float32],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        held: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        """Return what the segments that ended with this step earned, (N,)."""
        extra = np.array([self._recorder.pop(env) for env in range(len(self._sums))]) * self._factor
        self._sums += extra
        return extra

    def pop(self, env: int) -> float:
        """Return the sum of the episode that ended in `env`, and begin the next one."""
        total = float(self._sums[env])
        self._sums[env] = 0.0
        return total


class JudgedEnv(RLlibVectorEnv):
    """RLlibVectorEnv with SegmentScoreRewarder in place of shaping."""

    _judging: JudgingRecorder | None = None

    def _new_recorder(self, config: EnvConfig) -> RunnerRecorder | None:
        settings = self._recording_config()
        self._judging = None if settings is None else JudgingRecorder(config, settings)
        return self._judging

    def _new_shaping(self) -> EpisodeRewarder | None:
        self._shaping = None
        if self._judging is not None:
            self._shaping = SegmentScoreRewarder(self._judging, self.num_envs, self.config.run.shaping.coefficient)
        return self._shaping
