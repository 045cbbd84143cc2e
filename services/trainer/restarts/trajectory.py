"""A trajectory of the state archive as an object: all actions from the true start to an entry, and its state there.

It is a zip without pickle. The order of an epoch names it by key and digest, and a replay proves where it leads.
"""

import base64
import io
import json
import zipfile
from dataclasses import dataclass
from typing import Any, Final

from services.trainer.restarts.collector import CollectedState
from services.trainer.state_archive.archive import PathPart
from services.trainer.state_archive.cell import ArchiveCell, parse_cell
from shared.contracts.base import sha256
from shared.errors import ContractError, DigestMismatch
from shared.game.recording.segment import unpack_state

FORMAT: Final = 1
INDEX: Final = "index.json"
STATE: Final = "end.state"
MAX_BYTES: Final = 1 << 26  # unpacked; a larger zip is not ours


@dataclass(frozen=True, slots=True)
class Trajectory:
    """How the archive reached an entry. Its actions are those that were executed."""

    entry: int
    cell: ArchiveCell
    """The cell in which it ends."""
    parts: tuple[PathPart, ...]
    state: bytes
    """The emulator's state at its end, compressed."""
    digest: str
    """SHA-256 of that state."""

    @classmethod
    def of(cls, entry: int, parts: tuple[PathPart, ...], end: CollectedState) -> "Trajectory":
        """The trajectory of these parts to an entry of the archive."""
        return cls(entry, end.cell, parts, end.state, end.digest)

    @property
    def steps(self) -> int:
        """Actions from the true start to the end."""
        return sum(len(part.actions) for part in self.parts)


def write_trajectory(trajectory: Trajectory) -> bytes:
    """The zip's bytes. The same trajectory gives the same bytes."""
    index = {
        "format": FORMAT,
        "entry": trajectory.entry,
        "cell": trajectory.cell,
        "digest": trajectory.digest,
        "parts": [[part.seed, base64.b64encode(part.actions).decode()] for part in trajectory.parts],
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        # ZipInfo without a date: bytes must not depend on the clock.
        archive.writestr(zipfile.ZipInfo(INDEX), json.dumps(index))
        archive.writestr(zipfile.ZipInfo(STATE), trajectory.state)
    return buffer.getvalue()


def read_trajectory(data: bytes, name: str) -> Trajectory:
    """Parse what `write_trajectory` wrote under this name. Raises ContractError or DigestMismatch if it is damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
                raise ContractError(f"{name} unpacks to more than {MAX_BYTES} bytes: it is no trajectory")
            found = _trajectory(json.loads(archive.read(INDEX)), archive.read(STATE), name)
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError) as error:
        problem = f"{name} is no trajectory of an archive of states ({error}): restore the object or start a new run"
        raise ContractError(problem) from error
    if sha256(unpack_state(found.state)) != found.digest:
        raise DigestMismatch(f"{name}: the state at its end is damaged: restore the object or start a new run")
    return found


def _trajectory(index: dict[str, Any], state: bytes, name: str) -> Trajectory:
    if index["format"] != FORMAT:
        raise ContractError(f"{name} has format {index['format']!r}, this version reads {FORMAT}")
    parts = tuple(PathPart(int(seed), base64.b64decode(text, validate=True)) for seed, text in index["parts"])
    return Trajectory(int(index["entry"]), parse_cell(index["cell"]), parts, state, str(index["digest"]))
