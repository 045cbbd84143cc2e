"""Reads of a segment archive what judges see: manifest, states and key frames. Any that is not whole is Permanent."""

from dataclasses import dataclass

from pydantic_core import from_json

from services.judge.domain.facts.states import StepState
from shared.contracts.archive import open_archive
from shared.contracts.segment import FRAMES, STATES, SegmentManifest
from shared.errors import ContractError

MAX_FRAME = 2_000_000  # bytes of a picture


@dataclass(frozen=True, slots=True)
class SegmentRecording:
    """What the judges see of a segment. `frames` are PNG files in the order of time."""

    manifest: SegmentManifest
    states: list[StepState]
    frames: list[bytes]


def read_archive(raw: bytes, *, frames: bool = True) -> SegmentRecording:
    """Parse the archive, checking each member that is read against its digest in the manifest."""
    with open_archive(raw) as archive:
        manifest = archive.manifest
        states = archive.read(STATES)
        names = [f"{FRAMES}{step:04d}.png" for step in sorted(manifest.key_frames)] if frames else []
        pictures = [archive.read(name, MAX_FRAME) for name in names]
    return SegmentRecording(manifest, _states(states, manifest.steps), pictures)


def _states(raw: bytes, steps: int) -> list[StepState]:
    lines = raw.rstrip(b"\n").split(b"\n", steps)  # of millions of lines, no more than these
    if len(lines) != steps:
        raise ContractError(f"{STATES} does not have one line for each of {steps} steps")
    states = []
    for step, line in enumerate(lines):
        try:
            row = from_json(line)  # half the time of the standard library, and 300 lines a segment
        except ValueError as error:
            raise ContractError(f"{STATES} line {step + 1} is not JSON") from error
        if not isinstance(row, dict):
            raise ContractError(f"{STATES} line {step + 1} is not an object")
        states.append(StepState.from_row(row, step))
    return states
