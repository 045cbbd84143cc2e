"""Where recorded segments were: the steps in each room, and a key frame of each room. Pure."""

from collections import Counter
from collections.abc import Iterable

from pydantic import BaseModel

from services.coordinator.domain.segment_summary import Room, SegmentSummary
from shared.contracts.ids import EpisodeId, RunId, SegmentId
from shared.store.keys import SegmentPlace


class RoomVisits(BaseModel):
    """Steps in one room. `picture` is the number of a key frame of it, in the segment that the other ids name."""

    group: int
    room: int
    steps: int
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


def room_map(recorded: int, read: Iterable[tuple[SegmentPlace, SegmentSummary]]) -> RoomMap:
    """The map of the segments that were read, out of `recorded` ones."""
    steps: Counter[Room] = Counter()
    pictures: dict[Room, RoomVisits] = {}
    number = 0
    for place, summary in read:
        number += 1
        steps.update(summary.rooms)
        for (group, room), picture in summary.pictures.items():
            pictures[group, room] = RoomVisits(
                group=group,
                room=room,
                steps=0,
                episode=place.episode,
                segment=place.segment,
                epoch=place.epoch,
                picture=picture,
            )
    rooms = [
        pictures.get(where, RoomVisits(group=where[0], room=where[1], steps=0)).model_copy(update={"steps": many})
        for where, many in sorted(steps.items())
    ]
    return RoomMap(recorded=recorded, read=number, rooms=rooms)
