"""Counts prompt tokens as a server would, and how many of them a prefix cache would already hold.

The count is an estimate (four bytes a token, a fixed number per picture); clients must not rely on it.
"""

import hashlib
from typing import Any

from shared.process.bounded_cache import BoundedCache

BLOCK_BYTES = 64  # 16 tokens of about four bytes
MAX_BLOCKS = 200_000
IMAGE_TOKENS = 290  # a 160 x 144 picture at 3x


def tokens(data: bytes) -> int:
    """Return the estimated tokens of a text."""
    return -(-len(data) // 4)


class PrefixCache:
    """Remembers blocks of earlier prompts. A block counts as cached only if all blocks before it do."""

    def __init__(self) -> None:
        self._blocks: BoundedCache[bytes, None] = BoundedCache(MAX_BLOCKS)

    def count(self, model: str, prompt: list[bytes | None]) -> tuple[int, int]:
        """Return (tokens, cached tokens) of a prompt: texts, and None for each picture."""
        total = sum(IMAGE_TOKENS if part is None else tokens(part) for part in prompt)
        chain = hashlib.sha256(model.encode()).digest()
        cached = 0
        hit = True
        leading = b"".join(part for part in prompt[: _first_picture(prompt)] if part is not None)
        for start in range(0, len(leading) - BLOCK_BYTES + 1, BLOCK_BYTES):
            chain = hashlib.sha256(chain + leading[start : start + BLOCK_BYTES]).digest()
            hit = hit and chain in self._blocks
            cached += BLOCK_BYTES // 4 if hit else 0
            self._blocks.put(chain, None)
        return total, cached


def _first_picture(prompt: list[bytes | None]) -> int:
    return prompt.index(None) if None in prompt else len(prompt)


def usage_report(prompt: int, cached: int, output: int, form: str) -> dict[str, Any] | None:
    """Return the `usage` object of an answer, None for `none`."""
    if form == "none":
        return None
    details = {"prompt_tokens_details": {"cached_tokens": cached}} if form == "full" else {}
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output, **details}
