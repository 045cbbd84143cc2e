"""What one epoch adds to a run's state archive: a zip without pickle. Packs form a chain: each names the one before.

The index is JSON; each entry has a member with the emulator's state and one with the episode's memory.
"""

import base64
import io
import json
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from services.trainer.restarts.collector import CollectedState
from services.trainer.state_archive.archive import PathQuality
from services.trainer.state_archive.cell import ArchiveCell, parse_cell
from shared.contracts.base import sha256
from shared.contracts.epoch import ArchiveRef
from shared.errors import ContractError, DigestMismatch
from shared.game.recording.segment import unpack_state

FORMAT: Final = 1
INDEX: Final = "index.json"
MAX_BYTES: Final = 1 << 30  # unpacked; a larger zip is not ours


@dataclass(frozen=True, slots=True)
class ArchivePack:
    """The entries of one epoch, the first with number `first`, and the visits of its episodes."""

    previous: ArchiveRef | None
    first: int
    states: tuple[CollectedState, ...]
    visits: Mapping[ArchiveCell, int]


def write_pack(pack: ArchivePack) -> bytes:
    """The zip's bytes. The same pack gives the same bytes."""
    index = {
        "format": FORMAT,
        "previous": None if pack.previous is None else pack.previous.model_dump(mode="json"),
        "first": pack.first,
        "entries": [_fields(state) for state in pack.states],
        "visits": pack_visits(pack.visits),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        # ZipInfo without a date: bytes must not depend on the clock.
        archive.writestr(zipfile.ZipInfo(INDEX), json.dumps(index))
        for number, state in enumerate(pack.states, start=pack.first):
            archive.writestr(zipfile.ZipInfo(f"{number}.state"), state.state)
            archive.writestr(zipfile.ZipInfo(f"{number}.memory"), state.memory)
    return buffer.getvalue()


def read_pack(data: bytes, name: str) -> ArchivePack:
    """Parse what `write_pack` wrote under this name. ContractError if it is damaged, DigestMismatch for a state."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
                raise ContractError(f"{name} unpacks to more than {MAX_BYTES} bytes: it is no archive of states")
            index = json.loads(archive.read(INDEX))
            if index["format"] != FORMAT:
                raise ContractError(f"{name} has format {index['format']!r}, this version reads {FORMAT}")
            first = int(index["first"])
            states = tuple(
                _state(name, number, fields, archive.read(f"{number}.state"), archive.read(f"{number}.memory"))
                for number, fields in enumerate(index["entries"], start=first)
            )
            previous = None if index["previous"] is None else ArchiveRef.model_validate(index["previous"])
            return ArchivePack(previous, first, states, unpack_visits(index["visits"]))
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError) as error:
        problem = f"{name} is no archive of states ({error}): restore the object or start a new run"
        raise ContractError(problem) from error


def pack_states(states: Sequence[CollectedState]) -> list[dict[str, Any]]:
    """The states as plain JSON data, for a checkpoint."""
    return [{**_fields(one), "state": _text(one.state), "memory": _text(one.memory)} for one in states]


def unpack_states(data: Sequence[Mapping[str, Any]]) -> list[CollectedState]:
    """The inverse of `pack_states`."""
    return [_from_fields(one, _bytes(one["state"]), _bytes(one["memory"])) for one in data]


def pack_visits(visits: Mapping[ArchiveCell, int]) -> list[list[Any]]:
    """Visits by cell as plain JSON data, sorted."""
    return sorted([list(cell), count] for cell, count in visits.items())


def unpack_visits(data: Sequence[Sequence[Any]]) -> Counter[ArchiveCell]:
    """The inverse of `pack_visits`."""
    return Counter({parse_cell(cell): int(count) for cell, count in data})


def _fields(state: CollectedState) -> dict[str, Any]:
    return {
        "cell": state.cell,
        "parent": state.parent,
        "seed": state.seed,
        "actions": _text(state.actions),
        "quality": state.quality,
        "counters": _text(state.counters),
        "digest": state.digest,
        "follows": state.follows,
    }


def _from_fields(fields: Mapping[str, Any], state: bytes, memory: bytes) -> CollectedState:
    return CollectedState(
        cell=parse_cell(fields["cell"]),
        parent=None if fields["parent"] is None else int(fields["parent"]),
        seed=int(fields["seed"]),
        actions=_bytes(fields["actions"]),
        quality=PathQuality(*map(int, fields["quality"])),
        counters=_bytes(fields["counters"]),
        digest=str(fields["digest"]),
        state=state,
        memory=memory,
        follows=None if fields.get("follows") is None else int(fields["follows"]),  # absent before 2026-11-24
    )


def _state(name: str, number: int, fields: Mapping[str, Any], state: bytes, memory: bytes) -> CollectedState:
    collected = _from_fields(fields, state, memory)
    if sha256(unpack_state(state)) != collected.digest:
        raise DigestMismatch(f"{name}: the state of entry {number} is damaged: restore the object or start a new run")
    return collected


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
