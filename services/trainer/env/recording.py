"""Collects segments while games are played. Nothing here waits: a step costs the same whether the store is fast, slow
or away.

A take (take.py) gathers one environment's steps. When segments are complete the sampler decides which of them are worth
recording; those go into a bounded outbox (outbox.py), and from there to a writer process (clerk.py, writer.py) that
reads them where they were gathered (buffers.py, tray.py) and does all the work: decoding, PNG, zip, store. What an
outage makes us drop is counted, and what is kept is a fair sample.
"""

import threading
from typing import TYPE_CHECKING, Final

from services.trainer.domain.doubt import Doubt
from services.trainer.domain.sampling import Quota, Sampler
from services.trainer.env.buffers import BufferPool
from services.trainer.env.finished import Finished
from services.trainer.env.outbox import Outbox, Written
from services.trainer.env.take import Take

if TYPE_CHECKING:
    from services.trainer.env.config import EnvConfig, RecordingConfig

BATCH: Final = 8  # finished segments that are dealt with at once; the first costs as much as six of the others


class Recorder:
    """The recording of one env runner: its takes, its outbox, its account. Its takes may be in several threads."""

    def __init__(self, config: "EnvConfig", settings: "RecordingConfig") -> None:
        self._config, self._settings = config, settings
        quota = Quota.of(settings.sampling, settings.epoch_steps, config.segment_steps, settings.runners)
        self._sampler = Sampler(quota, seed=config.seed)
        self.doubt: Doubt | None = None
        self._pool = BufferPool(config.segment_steps)
        self._outbox = Outbox(settings.store, self._pool, settings.slots)
        self._finished: list[Finished] = []
        self._lost = 0
        self._lock = threading.Lock()

    def take(self, env: int) -> Take:
        """The take of environment `env` of this runner."""
        return Take(self._config, self._settings, env, self._pool, self._finish)

    def written(self) -> list[Written]:
        """Segments that are in the store by now, each listed once over all calls."""
        self._decide()
        return self._outbox.written()

    @property
    def pending(self) -> int:
        """Segments on their way to the store."""
        self._decide()
        return self._outbox.pending

    @property
    def dropped(self) -> int:
        """Segments lost to a slow or absent store, or for want of memory."""
        return self._outbox.dropped + self._lost

    def close(self, patience_s: float = 15.0) -> None:
        """Wait at most `patience_s` for what is on its way, then end the writer and give the memory back."""
        self._decide()
        self._outbox.close(patience_s)
        self._pool.close()

    def kill_writer(self) -> None:
        """End the writer at once, as the system may; for tests of what follows."""
        self._outbox.kill_writer()

    def _finish(self, finished: Finished | None) -> None:
        with self._lock:
            if finished is None:
                self._lost += 1
                return
            self._finished.append(finished)
            full = len(self._finished) >= BATCH
        if full:
            self._decide()

    def _decide(self) -> None:
        """Choose among the finished segments; the others' buffers are free again."""
        with self._lock:
            for finished in self._finished:
                reason = self._sampler.decide(finished.candidate(self._disagreement(finished)))
                if reason is None:
                    self._pool.give_back(finished.segment.buffer)
                else:
                    self._outbox.post(finished.parcel(reason))
            self._finished.clear()

    def _disagreement(self, finished: Finished) -> float | None:
        """The reward model's doubt about a segment, or None as long as no model is known (set `doubt`)."""
        return None if self.doubt is None else self.doubt(finished.segment.buffer.features())


def recording_of(config: "EnvConfig") -> Recorder | None:
    """The recorder that a configuration asks for, or None."""
    return None if config.recording is None else Recorder(config, config.recording)
