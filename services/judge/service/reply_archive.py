"""Keeps prompts and raw replies, so that a person can read later what a judge saw and said."""

import asyncio
from typing import Any

from services.judge.service.prompt_builder import Prompt
from shared.contracts.base import sha256
from shared.contracts.ids import Digest, JudgeName, RunId
from shared.contracts.scores import JudgeReplies
from shared.store import keys
from shared.store.port import Store


class ReplyArchive:
    """Writes one object per run and prompt. Equal segments have equal prompts, and so one object."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def keep(self, run: RunId, judge: JudgeName, prompt: Prompt, replies: list[str]) -> None:
        """Store a prompt with its replies. A prompt that is asked again replaces its former replies."""
        document = JudgeReplies(judge=judge, prompt=_without_pictures(prompt.body), replies=replies)
        packed = await asyncio.to_thread(document.pack)
        await self._store.put(keys.replies(run, Digest(prompt.digest)), packed)


def _without_pictures(value: Any) -> Any:
    """The body with each picture's data replaced by its SHA-256: pictures are in the segment."""
    if isinstance(value, dict):
        return {name: _without_pictures(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_without_pictures(one) for one in value]
    if isinstance(value, str) and value.startswith("data:image/"):
        return f"sha256:{sha256(value.encode())}"
    return value
