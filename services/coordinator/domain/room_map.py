"""Where recorded segments were: the steps in each room, and a key frame of each room. Pure.

With an archive of states, also how far it reaches.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from pydantic import BaseModel

from services.coordinator.domain.segment_summary import Room, SegmentSummary
from shared.contracts.ids import EpisodeId, RunId, SegmentId
from shared.contracts.progress import ArchivedRoom
from shared.store.keys import SegmentPlace


class RoomVisits(BaseModel):
    """Steps in one room. `picture` is the number of a key frame of it, in the segment that the other ids name.

    `cells` counts the places of the archive of states in it; the epoch was the first to reach `new_cells` of them.
    """

    group: int
    room: int
    steps: int = 0
    cells: int = 0
    new_cells: int = 0
    episode: EpisodeId | None = None
    segment: SegmentId | None = None
    epoch: int | None = None
    picture: int | None = None

    def place(self, run: RunId) -> SegmentPlace | None:
        """The segment that holds the picture; None without one."""
        if self.epoch is None or self.episode is None or self.segment is None:
            return None
        return SegmentPlace(run, self.epoch, self.episode, self.segment)


class RoomMap(BaseModel):
    """Where recorded segments were. Of more segments than `read`, an even sample."""

    recorded: int
    read: int
    rooms: list[RoomVisits]


def room_map(
    recorded: int, read: Iterable[tuple[SegmentPlace, SegmentSummary]], archived: Sequence[ArchivedRoom] = ()
) -> RoomMap:
    """The map of the segments that were read, out of `recorded` ones, and of the rooms of the archive of states."""
    steps: Counter[Room] = Counter()
    pictures: dict[Room, RoomVisits] = {}
    clear: set[Room] = set()
    number = 0
    for place, summary in read:
        number += 1
        steps.update(summary.rooms)
        for (group, room), picture in summary.pictures.items():
            if (group, room) in clear and (group, room) not in summary.clear:
                continue
            pictures[group, room] = RoomVisits(
                group=group,
                room=room,
                episode=place.episode,
                segment=place.segment,
                epoch=place.epoch,
                picture=picture,
            )
        clear |= summary.clear
    reached = {(one.group, one.room): {"cells": one.cells, "new_cells": one.new_cells} for one in archived}
    rooms = [
        pictures.get((group, room), RoomVisits(group=group, room=room)).model_copy(
            update={"steps": steps[group, room], **reached.get((group, room), {})}
        )
        for group, room in sorted(steps.keys() | reached.keys())
    ]
    return RoomMap(recorded=recorded, read=number, rooms=rooms)
