"""The valid keys, and the place of a segment derived from its key."""

import pytest

from shared.contracts.ids import EpisodeId, RunId, SegmentId
from shared.errors import Permanent
from shared.store import keys

RUN = RunId("demo")


@pytest.mark.parametrize("epoch", [0, 7, 10, 114])
def test_a_segment_is_found_at_its_own_key(epoch: int) -> None:
    place = keys.SegmentPlace(RUN, epoch, EpisodeId("e0007-r00-v03-0002"), SegmentId("e0007-r00-v03-0002-s001"))
    assert keys.segment_place(keys.segment(*place)) == place


@pytest.mark.parametrize(
    "path",
    [
        "notes.txt",
        "epoch_0/notes.zip",
        "epoch_0/e1/s1.zip.tmp",
        "epoch_0/e1/s1.json",
        "epoch_0/e1/deeper/s1.zip",
        "epoch_0/E1/s1.zip",
        "epoch_0/e1/My holiday.zip",
        "epoch_00/e1/s1.zip",
        "epoch_x/e1/s1.zip",
        "epoch_-1/e1/s1.zip",
        "old/e1/s1.zip",
    ],
)
def test_foreign_objects_among_segments_are_ignored(path: str) -> None:
    assert keys.segment_place(keys.segments_prefix(RUN) + path) is None


def test_a_digest_note_names_archive_and_digest_and_is_no_segment() -> None:
    archive = keys.segment(RUN, 0, EpisodeId("e1"), SegmentId("s1"))
    note = keys.digest_note(archive, "a" * 64)

    assert keys.noted_digests([archive, note, f"{archive}.sha256-short"]) == {archive: "a" * 64}
    assert keys.is_digest_note(note)
    assert not keys.is_digest_note(archive)
    assert keys.segment_place(note) is None
    keys.split(note)


LONG = f"models/{'/'.join(['x' * 200] * 2)}/{'y' * 103}"


@pytest.mark.parametrize("key", ["models/x", f"models/{'x' * 200}", LONG, "episodes/_a=b+c@d-e.f/0"])
def test_key_at_the_limits_is_accepted(key: str) -> None:
    bucket, path = keys.split(key)
    assert f"{bucket}/{path}" == key


@pytest.mark.parametrize(
    "key",
    [f"models/{'x' * 201}", f"{LONG}y", "models/a..b", "models/a.", "models/.a", "models/-a", "models/a b", "x/y"],
)
def test_key_beyond_the_limits_is_refused(key: str) -> None:
    with pytest.raises(Permanent, match="store key"):
        keys.split(key)


def test_a_prefix_ends_in_a_slash_and_may_be_a_whole_bucket() -> None:
    assert keys.split("models/", prefix=True) == ("models", "")
    assert keys.split("models/runs/", prefix=True) == ("models", "runs/")
    with pytest.raises(Permanent, match="store prefix 'models/runs': it must end in a slash"):
        keys.split("models/runs", prefix=True)
