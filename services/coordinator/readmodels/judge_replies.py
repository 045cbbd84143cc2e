"""What a judge was asked and what it replied, word for word, for a page: texts alone, of bounded size."""

import asyncio
import json
from typing import Any, Final

from pydantic import BaseModel, Field

from shared.contracts.ids import Digest, JudgeName, RunId
from shared.contracts.scores import JudgeReplies
from shared.errors import ContractError
from shared.store import keys
from shared.store.port import NotFound, Store

MAX_CHARACTERS: Final = 200_000  # of all texts together: a browser must show them; `zelda trace --prompts` prints all
NOT_KEPT: Final = (
    "The judge service kept no replies to this prompt, or they have expired. To keep those of later "
    "segments, start the system again with ZELDA_JUDGE__KEEP_REPLIES=true in its environment."
)


class PromptMessage(BaseModel):
    """One message of a prompt. A picture is its SHA-256 in brackets: the segment holds the picture itself."""

    role: str
    text: str


class KeptReplies(BaseModel):
    """One prompt and all replies to it."""

    judge: JudgeName
    messages: list[PromptMessage]
    settings: str = Field(description="the other fields of the request as JSON, e.g. model, temperature and schema")
    replies: list[str]
    complete: bool = Field(description=f"false if texts were cut: together they have {MAX_CHARACTERS:,} characters")


class _Budget:
    """Cuts texts, so that together they have at most `left` characters."""

    def __init__(self, left: int) -> None:
        self.left, self.cut = left, False

    def take(self, text: str) -> str:
        taken = text[: self.left]
        self.left -= len(taken)
        self.cut = self.cut or len(taken) < len(text)
        return taken


class JudgeRepliesReader:
    """Reads prompts and replies."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self, run: RunId, prompt: Digest) -> KeptReplies:
        """What was kept for this prompt; NotFound if nothing was, ContractError if it is damaged."""
        key = keys.replies(run, prompt)
        try:
            raw = await self._store.get(key)
        except NotFound as error:
            raise NotFound(NOT_KEPT) from error
        try:
            kept = await asyncio.to_thread(JudgeReplies.unpack, raw)
        except ContractError as error:
            raise ContractError(f"{key} is {error}; it is damaged, or a newer version wrote it.") from error
        return shorten(kept)


def shorten(kept: JudgeReplies, characters: int = MAX_CHARACTERS) -> KeptReplies:
    """The texts of a prompt and its replies. The replies come first: they are what a reader wants to see whole."""
    budget = _Budget(characters)
    replies = [budget.take(text) for text in kept.replies]
    messages = [PromptMessage(role=role[:40], text=budget.take(text)) for role, text in _messages(kept.prompt)]
    others = {name: value for name, value in kept.prompt.items() if name != "messages"}
    settings = budget.take(json.dumps(others, indent=1, ensure_ascii=False))
    return KeptReplies(judge=kept.judge, messages=messages, settings=settings, replies=replies, complete=not budget.cut)


def _messages(prompt: dict[str, Any]) -> list[tuple[str, str]]:
    """Role and text of each message; anything else that a request may hold there is shown as JSON."""
    found = prompt.get("messages", [])
    items = found if isinstance(found, list) else [found]
    return [
        (str(one.get("role", "")), _text(one.get("content"))) if isinstance(one, dict) else ("", _text(one))
        for one in items
    ]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_part(part) for part in content)
    return json.dumps(content, ensure_ascii=False)


def _part(part: Any) -> str:
    match part:
        case {"text": str(text)}:
            return text
        case {"image_url": {"url": str(address)}}:
            return f"[picture {address}]"
    return json.dumps(part, ensure_ascii=False)
