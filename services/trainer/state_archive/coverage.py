"""Which rooms a state archive reaches, and where play has just got to. Pure."""

from collections import Counter

from services.trainer.state_archive.archive import StateArchive
from services.trainer.state_archive.cell import ArchiveCell
from shared.contracts.progress import ArchivedRoom

Room = tuple[int, int]
"""Group and number."""


def archived_rooms(archive: StateArchive, first: int) -> list[ArchivedRoom]:
    """The rooms of an archive, sorted. A cell is new if its first entry has the number `first` or a later one."""
    found: dict[ArchiveCell, int] = {}
    for entry in archive.entries:
        found.setdefault(entry.cell, entry.number)
    cells = Counter(_room(cell) for cell in found)
    new = Counter(_room(cell) for cell, number in found.items() if number >= first)
    visits: Counter[Room] = Counter()
    for cell, times in archive.visits.items():
        visits[_room(cell)] += times
    return [
        ArchivedRoom(group=room[0], room=room[1], cells=many, new_cells=new[room], visits=visits[room])
        for room, many in sorted(cells.items())
    ]


def _room(cell: ArchiveCell) -> Room:
    return cell.group, cell.room
