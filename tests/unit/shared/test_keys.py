"""The valid keys, and the place of a segment derived from its key."""

from inspect import signature
from types import FunctionType

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
    assert not keys.is_digest_note(f"{note}0")
    assert keys.noted_digests([f"{note}0"]) == {}
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


PLACE: dict[str, object] = {
    "epoch": 3,
    "episode": EpisodeId("e1"),
    "segment": SegmentId("s1"),
    "first": SegmentId("s1"),
}
PLACE |= {"second": SegmentId("s2"), "digest": "a" * 64, "prompt": "b" * 64, "pack": "p1", "entry": 4, "revision": 5}
PLACE |= {"attempt": 6, "ended": True, "rubric": "v2"}
OUTSIDE = {"run_index", "run_notes", "deleted_run"}  # a deletion treats them apart


def of_a_run(run: RunId) -> dict[str, str]:
    """Every key and prefix that belongs to one run, by the function that builds it."""
    found: dict[str, str] = {}
    for name, function in vars(keys).items():
        parameters = list(signature(function).parameters) if isinstance(function, FunctionType) else []
        if parameters[:1] == ["run"] and signature(function).return_annotation is str and name not in OUTSIDE:
            found[name] = function(run, **{one: PLACE[one] for one in parameters[1:]})
    return found


def test_a_deletion_reaches_all_objects_of_a_run_and_no_others() -> None:
    prefixes = tuple(keys.prefixes_of_run(RUN).values())
    built = of_a_run(RUN)
    assert len(built) > 30
    for key in built.values():
        assert key.startswith(prefixes), key
    for key in of_a_run(RunId("demo-2")).values():
        assert not key.startswith(prefixes), key


def test_no_two_kinds_of_objects_share_a_key() -> None:
    built = of_a_run(RUN)
    assert len(set(built.values())) == len(built)


def test_a_pair_has_one_key_whichever_segment_is_named_first() -> None:
    one, other, third = SegmentId("s1"), SegmentId("s2"), SegmentId("s3")
    assert keys.pair(RUN, 0, one, other) == keys.pair(RUN, 0, other, one) != keys.pair(RUN, 0, one, third)


def test_only_scores_under_the_default_rubric_count_as_scores() -> None:
    key = keys.score(RUN, 3, SegmentId("s1"))
    assert keys.is_score(key, RUN, 3)
    others = [
        keys.score(RUN, 3, SegmentId("s1"), "v2"),
        keys.scores_jsonl(RUN, 3),
        f"{key}.tmp",
        key.removesuffix(".json"),
        "s1.json",
    ]
    for other in others:
        assert not keys.is_score(other, RUN, 3), other
    assert not keys.is_score(key, RUN, 4)
    assert not keys.is_score(key, RunId("demo-2"), 3)


def test_revisions_are_listed_in_their_order() -> None:
    numbers = (0, 9, 10, 1_000_000)
    records, leases = (
        [keys.run_revision(RUN, one) for one in numbers],
        [keys.lease_revision("one", one) for one in numbers],
    )
    assert sorted(records) == records
    assert sorted(leases) == leases
    assert [keys.lease_number(one) for one in leases] == list(numbers)
    assert keys.lease_number(f"{leases[0]}.tmp") is None


def test_the_default_rubric_has_the_short_name_of_a_report() -> None:
    assert keys.judge_report(RUN, 2).endswith("/epoch_2/judges.json")
    assert keys.judge_report(RUN, 2, "v2").endswith("/epoch_2/judges-v2.json")
