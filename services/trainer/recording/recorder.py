"""Records the segments of one env runner: one `SegmentRecorder` per environment, one sampler and one queue for all.

Nothing here waits: a step costs the same whether the store is fast, slow or away.
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from services.trainer.domain.ensemble_disagreement import EnsembleDisagreement
from services.trainer.domain.episodes import EpisodeName
from services.trainer.domain.sampling import Quota, Sampler
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import EpisodeRecorder, GameSession, StepResult
from services.trainer.recording.builder import CompletedSegment, ProgressSnapshot, SegmentBuilder, key_steps
from services.trainer.recording.config import RecordingConfig
from services.trainer.recording.live_view import LiveFramePublisher, WatchedRecorder
from services.trainer.recording.queue import WriteJob, WriteQueue
from services.trainer.recording.writer import WriterThread
from shared.contracts.epoch import SegmentRef
from shared.game.emulator.emulator import EMULATOR
from shared.game.observation import counters, layout
from shared.store.open import open_store

MIN_STEPS: Final = 10  # steps; the tail of an episode that is shorter than this shows nothing to judge


class SegmentRecorder:
    """Records one environment; implements the session's `EpisodeRecorder`."""

    def __init__(
        self, config: EnvConfig, settings: RecordingConfig, env: int, complete: Callable[[CompletedSegment], None]
    ) -> None:
        """`complete` receives each segment."""
        self._config, self._settings, self._env, self._complete = config, settings, env, complete
        self._key_steps = frozenset(key_steps(config.segment_steps))

    def begin_episode(self, session: GameSession) -> None:
        """Begin the first segment. The open one of an episode that was left early is forgotten."""
        self._facts = self._episode_facts(session)
        self._begin_segment(session, 0, ProgressSnapshot.of(session))

    def needs_picture(self, step: int) -> bool:
        """Whether this step of the episode must be drawn."""
        return step - self._segment.first_step in self._key_steps

    def add_step(self, session: GameSession, result: StepResult) -> None:
        """Add the step that was just made; complete the segment if it is its last."""
        segment = self._segment
        steps = segment.add_step(session)
        if steps in self._key_steps:
            segment.key_frames[steps] = session.emulator.raw_screen()
        ended = result.report is not None
        if not ended and steps < self._config.segment_steps:
            return
        end = ProgressSnapshot.of(session)
        if steps >= MIN_STEPS:
            self._complete(CompletedSegment.of(segment, session, self._facts, end, result.terminated))
        if not ended:
            self._begin_segment(session, segment.index + 1, end)

    def _begin_segment(self, session: GameSession, index: int, start: ProgressSnapshot) -> None:
        # The screen shows this moment already: the reset drew it, or it is the end of the segment before.
        first_picture = {0: session.emulator.raw_screen()}
        self._segment = SegmentBuilder(
            index=index,
            first_step=session.episode.steps,
            start=start,
            before=session.state,
            observations=[session.features],
            counters=[session.counters.packed],
            key_frames=first_picture,
        )

    def _episode_facts(self, session: GameSession) -> dict[str, Any]:
        """The fields of the manifest that all segments of an episode share."""
        settings = self._settings
        name = EpisodeName(settings.epoch, self._config.runner, self._env, session.episode.number)
        return {
            "run": settings.run,
            "epoch": settings.epoch,
            "episode": name.id,
            "game": session.game.name,
            "rom": session.rom_digest,
            "emulator": EMULATOR,
            "frame_skip": self._config.frame_skip,
            "actions": self._config.actions,
            "seed": session.episode.seed,
            "observation": layout.VERSION,
            "counters": counters.VERSION,
            "checkpoint": settings.checkpoint,
            "reward_model": settings.reward_model,
            "milestones_total": len(session.game.milestones),
        }


class RunnerRecorder:
    """Samples the completed segments of one env runner. Its environments may be stepped by several threads."""

    def __init__(
        self, config: EnvConfig, settings: RecordingConfig, disagreement: EnsembleDisagreement | None = None
    ) -> None:
        """`disagreement` measures how unsure the reward model is about a segment; the sampler prefers such segments."""
        quota = Quota.of(
            settings.sampling,
            settings.epoch_steps,
            config.segment_steps,
            settings.runners,
            settings.recorded,
            max(1, config.runner),  # 0 is the driver's own: the only one
        )
        self._sampler, self._disagreement = Sampler(quota, seed=config.seed), disagreement
        store = open_store(settings.store)
        writer = WriterThread(store)
        self._queue = WriteQueue(writer, settings.slots)
        self._live = LiveFramePublisher(store, settings, config.runner)
        writer.run_beside(self._live.run())
        self._lock = threading.Lock()
        self._config, self._settings = config, settings

    def for_env(self, env: int) -> EpisodeRecorder:
        """Return the recorder of environment `env`. The first environment can be watched."""
        recorder = SegmentRecorder(self._config, self._settings, env, self._sample)
        return WatchedRecorder(recorder, self._live) if env == 0 else recorder

    def written(self) -> list[SegmentRef]:
        """Return the segments that were stored since the last call."""
        return self._queue.written()

    @property
    def pending(self) -> int:
        """Number of segments on their way to the store."""
        return self._queue.pending

    @property
    def dropped(self) -> int:
        """Number of segments lost to a slow or absent store, or to an error."""
        return self._queue.dropped

    def close(self, patience_s: float = 15.0) -> None:
        """Wait at most `patience_s` for segments on their way, then end the writer."""
        self._queue.close(patience_s)

    def _sample(self, segment: CompletedSegment) -> None:
        """Queue the segment if the sampler chooses it."""
        with self._lock:
            reason = self._sampler.decide(segment.candidate(self._measure_disagreement(segment)))
        if reason is not None:
            archive = partial(segment.archive, reason)
            self._queue.post(WriteJob(segment.name, segment.facts["episode"], segment.key, archive))

    def _measure_disagreement(self, segment: CompletedSegment) -> float | None:
        measure = self._disagreement
        return None if measure is None else measure(segment.states_in(measure.view))
