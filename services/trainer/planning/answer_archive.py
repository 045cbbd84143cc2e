"""Keeps every question with its reply, and answers questions again from what was kept.

What an environment did is in its segments, which replay without any model. The archive serves the other replay: the
same questions receive the same answers, so a prompt, a grammar or an executor can be compared on real answers.
"""

import asyncio
import gzip
import json
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, Final

import structlog

from services.trainer.planning.question import ModelAnswer, Question, answered
from shared.contracts.base import sha256
from shared.contracts.ids import RunId
from shared.errors import ZeldaError
from shared.store import keys
from shared.store.port import Store

FLUSH_ANSWERS: Final = 64  # fewer, and the store holds thousands of tiny objects
MAX_UNSTORED: Final = 4_096  # while the store is away; older answers are dropped and counted

log = structlog.get_logger(__name__)


class AnswerArchive:
    """Writes the answers of one process in packs of JSON lines."""

    def __init__(self, store: Store, run: RunId, process: str) -> None:
        """`process` is unique within the run: packs of two processes must not share keys."""
        self._store, self._run, self._process = store, run, process
        self._lines: dict[int, list[bytes]] = {}
        self._packs = 0
        self._writing = asyncio.Lock()
        self.dropped = 0

    async def keep(self, question: Question, answer: ModelAnswer) -> None:
        """Keep an answer; write a pack when enough have come together."""
        lines = self._lines.setdefault(question.epoch, [])
        lines.append(json.dumps(record(question, answer), separators=(",", ":")).encode() + b"\n")
        if len(lines) >= FLUSH_ANSWERS:
            await self.flush()

    async def flush(self) -> None:
        """Write what is kept. An absent store keeps it in memory, up to MAX_UNSTORED answers."""
        async with self._writing:
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
            self.dropped += max(0, len(kept) - MAX_UNSTORED)
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


class KeptAnswers:
    """An AnswerSource that repeats kept answers and calls no model."""

    def __init__(self, packs: Iterable[bytes]) -> None:
        """`packs` are the objects that AnswerArchive wrote."""
        lines = [json.loads(line) for pack in packs for line in gzip.decompress(pack).splitlines()]
        self._replies: dict[str, str] = {line["digest"]: line["reply"] for line in lines}

    def submit(self, question: Question) -> "Future[ModelAnswer]":
        """Answer immediately: with the kept reply, or as a model that is away."""
        reply = self._replies.get(question.digest)
        kept = ModelAnswer("unavailable", detail="no answer to this question was kept")
        return answered(kept if reply is None else ModelAnswer("answered", reply))
