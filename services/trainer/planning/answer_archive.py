"""Keeps every question with its reply, so that a prompt, a grammar or an executor can be compared on real answers.

What an environment did is in its segments, which replay without any model. No answer waits for the store.
"""

import asyncio
import gzip
import json
from typing import Any, Final

import structlog

from services.trainer.planning.question import ModelAnswer, Question
from shared.contracts.base import sha256
from shared.contracts.ids import RunId
from shared.errors import ZeldaError
from shared.store import keys
from shared.store.port import Store

FLUSH_ANSWERS: Final = 64  # fewer, and the store holds thousands of tiny objects
MAX_UNSTORED: Final = 4_096  # of an epoch, while the store is away; older answers are dropped and logged

log = structlog.get_logger(__name__)


class AnswerArchive:
    """Writes the answers of one process in packs of JSON lines. For one event loop."""

    def __init__(self, store: Store, run: RunId, process: str) -> None:
        """`process` is unique within the run: packs of two processes must not share keys."""
        self._store, self._run, self._process = store, run, process
        self._lines: dict[int, list[bytes]] = {}
        self._packs = 0
        self._writing: asyncio.Task[None] | None = None  # one at a time: it counts the packs

    def keep(self, question: Question, answer: ModelAnswer) -> None:
        """Keep an answer; write a pack in the background when enough have come together."""
        lines = self._lines.setdefault(question.epoch, [])
        lines.append(json.dumps(record(question, answer), separators=(",", ":")).encode() + b"\n")
        if len(lines) >= FLUSH_ANSWERS and (self._writing is None or self._writing.done()):
            self._writing = asyncio.create_task(self._flush())

    async def close(self) -> None:
        """Write the rest."""
        if self._writing is not None:
            await self._writing
        await self._flush()

    async def _flush(self) -> None:
        """Write what is kept. While the store is away it stays in memory, up to MAX_UNSTORED answers of an epoch."""
        for epoch in sorted(self._lines):
            await self._write(epoch)

    async def _write(self, epoch: int) -> None:
        lines = self._lines.pop(epoch)
        key = keys.planner_answers(self._run, epoch, f"{self._process}-{self._packs:06d}")
        try:
            await self._store.put(key, gzip.compress(b"".join(lines), mtime=0))
            self._packs += 1
        except ZeldaError as error:
            log.warning("answers not stored yet", error=str(error), answers=len(lines))
            kept = lines + self._lines.get(epoch, [])
            if len(kept) > MAX_UNSTORED:
                log.warning("answers dropped", epoch=epoch, answers=len(kept) - MAX_UNSTORED)
            self._lines[epoch] = kept[-MAX_UNSTORED:]


def record(question: Question, answer: ModelAnswer) -> dict[str, Any]:
    """One line of the archive."""
    return {
        "digest": question.digest,
        "mode": question.mode,
        "place": question.place,
        "facts": question.facts,
        "seed": question.seed,
        "picture": None if question.picture is None else sha256(question.picture),
        "reply": answer.text,
        "seconds": round(answer.seconds, 3),
    }
