"""Reads from a segment archive what judges see: manifest, states and key frames. A damaged member is Permanent."""

from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from services.judge.domain.facts.states import StepState
from shared.contracts.archive import open_archive
from shared.contracts.segment import BEFORE, FRAMES, STATES, SegmentManifest
from shared.errors import ContractError

MAX_FRAME_BYTES = 2_000_000


@dataclass(frozen=True, slots=True)
class SegmentRecording:
    """The parts of a segment that judges see. `frames` are PNG files in order of time.

    `before` is the state before the first action; None in archives older than 2026-11-29.
    """

    manifest: SegmentManifest
    states: list[StepState]
    frames: list[bytes]
    before: StepState | None = None


def read_archive(raw: bytes, *, frames: bool = True) -> SegmentRecording:
    """Parse the archive. Each member that is read must match its digest in the manifest."""
    with open_archive(raw) as archive:
        manifest = archive.manifest
        states = archive.read(STATES)
        before = archive.read(BEFORE) if BEFORE in manifest.members else None
        names = [f"{FRAMES}{step:04d}.png" for step in sorted(manifest.key_frames)] if frames else []
        pictures = [archive.read(name, MAX_FRAME_BYTES) for name in names]
    first = None if before is None else StepState.from_row(_row(before, BEFORE), 0)
    return SegmentRecording(manifest, _parse_states(states, manifest.steps), pictures, first)


def _parse_states(raw: bytes, steps: int) -> list[StepState]:
    lines = raw.rstrip(b"\n").split(b"\n", steps)  # never splits more lines than expected
    if len(lines) != steps:
        raise ContractError(f"{STATES} does not have one line for each of {steps} steps")
    return [StepState.from_row(_row(line, f"{STATES} line {step + 1}"), step) for step, line in enumerate(lines)]


def _row(line: bytes, place: str) -> dict[str, Any]:
    try:
        row = from_json(line)  # takes half the time of the standard library; a segment has 300 lines
    except ValueError as error:
        raise ContractError(f"{place} is not JSON") from error
    if not isinstance(row, dict):
        raise ContractError(f"{place} is not an object")
    return row
