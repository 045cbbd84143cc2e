"""The map of rooms: which key frame pictures a room."""

import json
from types import SimpleNamespace
from typing import Any, cast

from services.coordinator.domain.room_map import room_map
from services.coordinator.domain.segment_summary import SegmentSummary, summarise
from shared.contracts.archive import SegmentArchive
from shared.contracts.segment import ACTIONS
from tests.unit.coordinator.earlier_run import PLACE

SEEN: dict[str, Any] = {"group": 0, "room": 17, "menu": 0, "dialog": None, "transition": False}


def summary(*rows: dict[str, Any]) -> SegmentSummary:
    """A segment with these states, and a key frame after each and before the first."""
    frames = {f"frames/{number:02d}.png": "digest" for number in range(len(rows) + 1)}
    manifest = SimpleNamespace(
        key_frames=list(range(len(rows) + 1)), ram_start="ram", members={ACTIONS: "digest", **frames}
    )
    states = "\n".join(json.dumps(SEEN | row) for row in rows).encode()
    return summarise(cast(SegmentArchive, SimpleNamespace(manifest=manifest, read=lambda _: states)))


def test_a_picture_of_a_room_shows_no_menu_text_or_transition() -> None:
    hidden = ({"menu": 1}, {"dialog": {"text": "Hello."}}, {"transition": True})
    assert summary({}, {}, *hidden).pictures == {(0, 17): 2}
    assert summary(*hidden).pictures == {(0, 17): 3}  # better than none
    later = PLACE._replace(epoch=1)
    (room,) = room_map(2, [(PLACE, summary({})), (later, summary({"menu": 1}))]).rooms
    assert (room.epoch, room.picture, room.steps) == (PLACE.epoch, 1, 2)
    (room,) = room_map(2, [(PLACE, summary({"menu": 1})), (later, summary({}))]).rooms
    assert room.epoch == later.epoch
