"""Finished chunks of simulated histories: one JSON line each, behind which an interrupted simulation continues."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Chunk:
    """The histories of consecutive seeds: how long they took, and the seeds of those that failed."""

    first: int
    histories: int
    seconds: float
    failed: list[int]


def read_chunks(state: Path | None) -> dict[int, Chunk]:
    """The finished chunks of a state file by their first seed; of equal ones, the last."""
    if state is None or not state.exists():
        return {}
    chunks = (Chunk(**json.loads(line)) for line in state.read_text(encoding="utf-8").splitlines())
    return {chunk.first: chunk for chunk in chunks}


def append_chunk(chunk: Chunk, state: Path | None) -> None:
    """Add one finished chunk to the state file."""
    if state is not None:
        with state.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(chunk)) + "\n")
