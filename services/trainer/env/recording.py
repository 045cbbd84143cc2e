"""Collects segments while games are played. Nothing here waits: a step costs the same whether the store is fast, slow
or away.

A take (take.py) gathers one environment's steps (draft.py). When a segment is complete the sampler decides whether it
is worth recording. If so it goes to shared memory (buffers.py, tray.py) and through a bounded outbox (outbox.py) to a
writer process (clerk.py, writer.py) that does all the work: decoding, PNG, zip, store. What an outage makes us drop is
counted, and what is kept is a fair sample.
"""

import threading
from typing import TYPE_CHECKING, Final

import structlog

from services.trainer.domain.ensemble_disagreement import EnsembleDisagreement
from services.trainer.domain.sampling import Quota, Reason, Sampler
from services.trainer.env.buffers import BufferPool
from services.trainer.env.draft import Draft
from services.trainer.env.finished import Finished
from services.trainer.env.outbox import Outbox, Written
from services.trainer.env.take import Take

if TYPE_CHECKING:
    from services.trainer.env.config import EnvConfig, RecordingConfig

log = structlog.get_logger(__name__)

BATCH: Final = 8  # segments that are handed over at once; the first costs as much as six of the others


class Recorder:
    """The recording of one env runner: its takes, its outbox, its account. Its takes may be in several threads."""

    def __init__(self, config: "EnvConfig", settings: "RecordingConfig") -> None:
        self._config, self._settings = config, settings
        quota = Quota.of(
            settings.sampling,
            settings.epoch_steps,
            config.segment_steps,
            settings.runners,
            settings.recorded,
            max(1, config.runner),  # 0 is the driver's own: the only one
        )
        self._sampler = Sampler(quota, seed=config.seed)
        self.doubt: EnsembleDisagreement | None = None
        self._pool = BufferPool()
        self._outbox = Outbox(settings.store, self._pool, settings.slots)
        self._chosen: list[tuple[Finished, Reason]] = []
        self._lost = 0
        self._lock = threading.Lock()

    def take(self, env: int) -> Take:
        """The take of environment `env` of this runner."""
        return Take(self._config, self._settings, env, self._pool, self._finish, self._lose)

    def written(self) -> list[Written]:
        """Segments that are in the store by now, each listed once over all calls."""
        self._post()
        return self._outbox.written()

    @property
    def pending(self) -> int:
        """Segments on their way to the store."""
        self._post()
        return self._outbox.pending

    @property
    def dropped(self) -> int:
        """Segments lost to a slow or absent store, or for want of memory."""
        return self._outbox.dropped + self._lost

    def close(self, patience_s: float = 15.0) -> None:
        """Wait at most `patience_s` for what is on its way, then end the writer and give the memory back."""
        self._post()
        self._outbox.close(patience_s)
        self._pool.close()

    def _lose(self) -> None:
        with self._lock:
            self._lost += 1

    def _finish(self, finished: Finished, draft: Draft) -> None:
        """Decide about a segment; unless it is chosen, its buffer is free again."""
        with self._lock:
            reason = self._sampler.decide(finished.candidate(self._disagreement(draft)))
            if reason is None or not self._completed(finished, draft):
                self._pool.give_back(finished.segment.buffer)
                return
            self._chosen.append((finished, reason))
            full = len(self._chosen) >= BATCH
        if full:
            self._post()

    def _completed(self, finished: Finished, draft: Draft) -> bool:
        try:
            finished.segment.buffer.complete(finished.parts(draft))
        except OSError as error:
            log.warning("a segment does not get to the writer", segment=finished.name, error=str(error))
            self._lost += 1
            return False
        return True

    def _post(self) -> None:
        """Hand over what was chosen."""
        with self._lock:
            for finished, reason in self._chosen:
                self._outbox.post(finished.parcel(reason))
            self._chosen.clear()

    def _disagreement(self, draft: Draft) -> float | None:
        """The reward model's doubt about a segment, or None as long as no model is known (set `doubt`)."""
        return None if self.doubt is None else self.doubt(draft.features())
