"""A state archive as one SQLite database, in a file or in memory, written once a round in one transaction.

A killed exploration continues with the last whole round. The states of replaced entries are dropped, their actions are
kept, because the paths of later entries go through them.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from services.trainer.exploration.rollout import FoundState
from services.trainer.state_archive.archive import ArchiveEntry, PathQuality, StateArchive
from services.trainer.state_archive.cell import ArchiveCell, parse_cell
from shared.config.differences import different_paths
from shared.errors import ContractError, DigestMismatch, Permanent
from shared.game.observation.episode_memory import EpisodeMemory
from shared.game.recording.segment import unpack_state

IN_MEMORY: Final = ":memory:"
SCHEMA: Final = """
create table if not exists facts (name text primary key, value text not null);
create table if not exists entries (
  number integer primary key, cell text not null, parent integer, seed integer not null, actions blob not null,
  hearts integer not null, steps integer not null, digest text not null, counters blob not null,
  milestones integer not null, state blob, memory blob);
create table if not exists visits (cell text primary key, visits integer not null);
"""


@dataclass(frozen=True, slots=True)
class StoredState:
    """The emulator's state of an entry, compressed, and its episode's memory."""

    state: bytes
    memory: bytes | None


class ArchiveFile:
    """The database of one exploration. `plan` is what must be equal to continue it."""

    def __init__(self, path: Path | str, plan: Mapping[str, Any], content: bytes | None = None) -> None:
        """Open or create the file. Raises Permanent if it belongs to another plan or is no archive.

        With the path IN_MEMORY it continues `content`, which `content()` of another one returned.
        """
        self._path = path
        self._database = sqlite3.connect(path, isolation_level=None)
        try:
            if content is not None:
                self._database.deserialize(content)
            self._database.executescript(SCHEMA)
            self._database.execute("pragma journal_mode=wal")
            self._check_pages()
            found = self.fact("plan")
        except (sqlite3.DatabaseError, ValueError) as error:
            raise Permanent(f"{path} is not an archive of states ({error}): choose another folder") from error
        wanted = json.loads(json.dumps(dict(plan)))
        if found is None:
            self.set_fact("plan", wanted)
        elif found != wanted:
            different = ", ".join(sorted(different_paths(found, wanted)))
            raise Permanent(f"{path} holds another exploration (it differs in {different}): choose another folder")

    def _check_pages(self) -> None:
        """Raise ValueError if a part of the file is damaged: SQLite itself notices it only on reading that part."""
        (result,) = self._database.execute("pragma quick_check(1)").fetchone()
        if result != "ok":
            raise ValueError(result)

    def content(self) -> bytes:
        """The whole database, to be continued elsewhere."""
        return self._database.serialize()

    def fact(self, name: str) -> Any:
        """A fact as data; None if it was never set."""
        row = self._database.execute("select value from facts where name = ?", (name,)).fetchone()
        return None if row is None else json.loads(row[0])

    def load(self) -> tuple[StateArchive, dict[int, int]]:
        """The archive without its states, and the milestones of each entry as bit sets. Permanent if it is damaged."""
        try:
            return self._load()
        except (ValueError, TypeError) as error:
            raise Permanent(f"{self._path} is damaged ({error}): explore again in another folder") from error

    def _load(self) -> tuple[StateArchive, dict[int, int]]:
        archive, milestones = StateArchive(), {}
        rows = self._database.execute(
            "select number, cell, parent, seed, actions, hearts, steps, digest, counters, milestones "
            "from entries order by number"
        )
        for number, cell, parent, seed, actions, hearts, steps, digest, counters, reached in rows:
            quality = PathQuality(hearts, steps)
            archive.add(ArchiveEntry(number, _cell(cell), parent, seed, actions, quality, digest, counters))
            milestones[number] = reached
        for cell, visits in self._database.execute("select cell, visits from visits"):
            archive.visits[_cell(cell)] = visits
        return archive, milestones

    def state(self, entry: ArchiveEntry) -> StoredState:
        """The state of an entry that is the best of its cell. Raises DigestMismatch if it is damaged."""
        row = self._database.execute("select state, memory from entries where number = ?", (entry.number,)).fetchone()
        if row is None or row[0] is None:
            raise Permanent(f"{self._path} has no state of entry {entry.number}: explore again in another folder")
        if (damage := _damage(entry, *row)) is not None:
            raise DigestMismatch(
                f"{self._path}: the state of entry {entry.number} is damaged ({damage}): "
                "explore again in another folder"
            )
        return StoredState(row[0], row[1])

    def write(
        self,
        added: Iterable[tuple[ArchiveEntry, FoundState]],
        replaced: Iterable[int],
        visits: Mapping[ArchiveCell, int],
        facts: Mapping[str, Any],
    ) -> None:
        """Write one round in one transaction."""
        database = self._database
        database.execute("begin immediate")
        try:
            database.executemany("insert into entries values (?,?,?,?,?,?,?,?,?,?,?,?)", map(_row, added))
            database.executemany(
                "update entries set state = null, memory = null where number = ?", [(number,) for number in replaced]
            )
            counted = [(_text(cell), count) for cell, count in visits.items()]
            database.executemany("insert or replace into visits values (?, ?)", counted)
            for name, value in facts.items():
                self.set_fact(name, value)
        except BaseException:
            database.execute("rollback")
            raise
        database.execute("commit")

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def set_fact(self, name: str, value: Any) -> None:
        """Set a fact; the value is JSON data."""
        self._database.execute("insert or replace into facts values (?, ?)", (name, json.dumps(value)))


def _damage(entry: ArchiveEntry, state: bytes, memory: bytes | None) -> str | None:
    """What is wrong with the stored state and memory of an entry; None if both are whole."""
    try:
        if memory is not None:
            EpisodeMemory.from_bytes(memory)
        digest = hashlib.sha256(unpack_state(state)).hexdigest()
    except (ContractError, TypeError) as error:
        return str(error)
    return None if digest == entry.digest else f"digest {digest:.12}, not {entry.digest:.12}"


def _row(added: tuple[ArchiveEntry, FoundState]) -> tuple[Any, ...]:
    entry, found = added
    return (
        *(entry.number, _text(entry.cell), entry.parent, entry.seed, entry.actions),
        *(*entry.quality, entry.digest, entry.counters, found.milestones, found.state, found.memory),
    )


def _text(cell: ArchiveCell) -> str:
    return json.dumps(cell)


def _cell(text: str) -> ArchiveCell:
    return parse_cell(json.loads(text))
