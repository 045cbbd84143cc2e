"""Keeps prompts and raw replies, so that a person can read later what a judge saw and said."""

import asyncio
from typing import Any

from services.judge.service.prompt_builder import Prompt
from shared.contracts.base import sha256
from shared.contracts.ids import Digest, JudgeName, RunId
from shared.contracts.scores import MAX_REPLY, JudgeReplies
from shared.store import keys
from shared.store.port import Store


class ReplyArchive:
    """Writes one object per run and prompt. Equal segments have equal prompts, and so one object."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def keep(self, run: RunId, judge: JudgeName, prompt: Prompt, replies: list[str]) -> None:
        """Store a prompt with its replies. A prompt that is asked again replaces its former replies."""
        texts = [_storable(text) for text in replies]
        document = JudgeReplies(judge=judge, prompt=_without_pictures(prompt.body), replies=texts)
        packed = await asyncio.to_thread(document.pack)
        await self._store.put(keys.replies(run, Digest(prompt.digest)), packed)


def _storable(text: str) -> str:
    """The reply as it can be stored: at most MAX_REPLY characters, and `?` for what UTF-8 has no code for."""
    return text[:MAX_REPLY].encode("utf-8", "replace").decode("utf-8")


def _without_pictures(value: Any) -> Any:
    """The body with each picture's data replaced by its SHA-256: pictures are in the segment."""
    if isinstance(value, dict):
        return {name: _without_pictures(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_without_pictures(one) for one in value]
    if isinstance(value, str) and value.startswith("data:image/"):
        return f"sha256:{sha256(value.encode())}"
    return value
