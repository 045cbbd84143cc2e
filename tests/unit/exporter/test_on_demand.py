"""Exports on demand: their directories, and the report of segments that cannot be exported."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

import av
import pyarrow.parquet as pq
import pytest

from cli.__main__ import exit_code_of
from cli.errors import FAILED, OK
from services.exporter.adapters.parquet import SegmentRows
from services.exporter.domain.manifest import ExportManifest
from services.exporter.on_demand import SegmentSelection, export_dataset, export_rows, export_segments, export_video
from services.exporter.settings import ExporterSettings
from shared.config.settings import StoreSettings
from shared.contracts.epoch import EpochStart
from shared.contracts.ids import RunId
from shared.game.decoding.names import ACTIONS
from shared.game.observation import layout
from shared.game.recording.segment import write_segment
from shared.state.segments import list_segments
from shared.store import keys
from shared.store.port import Store
from tests.unit.exporter.recorded_play import RUN, parts
from tests.unit.exporter.test_handlers import judged


async def test_segments_and_data_set_are_exported_on_demand(store: Store, tmp_path: Path) -> None:
    await judged(store, 3, number=0)
    settings = ExporterSettings(store=StoreSettings(url=f"file://{tmp_path}"), export={"scale": 1})
    folders = (
        await export_segments(settings, SegmentSelection.parse("walk", 0, None, None), tmp_path / "out", pytest.fail)
    ).exported
    assert len(folders) == 2
    assert all((folder / "video.mp4").stat().st_size > 1000 for folder in folders)
    result = await export_dataset(
        settings, SegmentSelection.parse("walk", None, None, None), tmp_path / "walk.parquet", pytest.fail
    )
    table = pq.read_table(tmp_path / "walk.parquet")
    assert table.num_rows == sum(result.exported) == 120
    assert len(table["observation"][0]) == 128
    assert table["next_counters"].null_count == 0
    scores = table["score"].to_pylist()
    assert scores[:60] == pytest.approx([0.6] * 60)
    assert scores[60:] == [None] * 60
    assert table["next_observation"][0] == table["observation"][1]
    features = json.loads(table.schema.metadata[b"features"])
    assert (len(features), features[0]) == (128, layout.FEATURES[0].name)
    assert [table["votes_progress"][row].as_py() for row in (0, 60)] == [[3, 3, 3], None]
    assert table["button"].to_pylist() == [ACTIONS[action] for action in table["action"].to_pylist()]
    assert table["room"].null_count == 0
    manifest = ExportManifest.from_bytes((folders[0] / "manifest.json").read_bytes()).segment
    assert dict(table["segment_reward_terms"][0].as_py()) == pytest.approx(manifest.reward_terms)
    assert table["segment_reward"][0].as_py() == pytest.approx(sum(manifest.reward_terms.values()))


async def test_the_best_segments_become_one_video(store: Store, tmp_path: Path) -> None:
    await judged(store, 3, number=0)
    await judged(store, 5, number=1)
    settings = ExporterSettings(store=StoreSettings(url=f"file://{tmp_path}"), export={"scale": 1})
    lengths = {}
    for best in (None, 1):
        path = tmp_path / f"best_{best}.mp4"
        seen: list[tuple[int, int]] = []
        selection = SegmentSelection.parse("walk", None, None, None, best)
        result = await export_video(
            settings, selection, path, pytest.fail, lambda *counts, seen=seen: seen.append(counts)
        )
        lengths[best] = sum(result.exported)
        assert seen == [(number, 2 if best is None else 1) for number in range(2 if best is None else 1)]
        # Each segment begins with the picture before its steps.
        assert pictures_of(path) == lengths[best] + len(result.exported)
    assert lengths == {None: 120, 1: 60}


async def test_the_best_segments_have_the_highest_scores_in_order_of_play(store: Store, tmp_path: Path) -> None:
    for number, value in enumerate((3, 5)):
        await judged(store, value, number)
    settings, found = ExporterSettings(store=StoreSettings(url=f"file://{tmp_path}")), {}
    for best in (1, 2):
        rows: list[SegmentRows] = []
        await export_rows(settings, SegmentSelection.parse(RUN, None, None, None, best), rows.append, pytest.fail)
        found[best] = [row.scores.weighted for row in rows if row.scores is not None]
    assert found == {1: [1.0], 2: [0.6, 1.0]}


async def test_a_whole_episode_becomes_one_video(store: Store, tmp_path: Path) -> None:
    """Both segments are of one episode: the second archive alone holds all of its actions."""
    settings = ExporterSettings(store=StoreSettings(url=f"file://{tmp_path}"), export={"scale": 1})
    places = sorted((await list_segments(store, RUN)).values(), key=lambda place: place.segment)
    assert len({place.episode for place in places}) == 1
    second = SegmentSelection.parse("walk", None, None, places[1].segment)
    path = tmp_path / "episode.mp4"
    result = await export_video(settings, second, path, pytest.fail, whole_episodes=True)
    assert (result.exported, pictures_of(path)) == ([120], 120)  # the first one is that after the first step


@pytest.mark.parametrize(("best", "steps"), [(1, 60), (2, 120)])
async def test_a_whole_episode_ends_with_its_last_best_segment(
    store: Store, tmp_path: Path, best: int, steps: int
) -> None:
    for number, value in enumerate((5, 3)):
        await judged(store, value, number)
    settings = ExporterSettings(store=StoreSettings(url=f"file://{tmp_path}"), export={"scale": 1})
    chosen = SegmentSelection.parse(RUN, None, None, None, best)
    result = await export_video(settings, chosen, tmp_path / "x.mp4", pytest.fail, whole_episodes=True)
    assert result.exported == [steps]


def pictures_of(path: Path) -> int:
    with av.open(str(path)) as video:
        return sum(1 for _ in video.decode(video=0))


@pytest.mark.parametrize("whole_episodes", [False, True])
async def test_play_that_does_not_replay_exactly_is_in_no_video(
    store: Store, tmp_path: Path, whole_episodes: bool
) -> None:
    settings = ExporterSettings(store=StoreSettings(url=f"file://{tmp_path}"), export={"scale": 1})
    first, second = await list_segments(store, RUN)
    chosen = SegmentSelection.parse(RUN, None, None, None)
    await store.put(second.key, diverging(await store.get(second.key)))
    failures: list[str] = []
    result = await export_video(settings, chosen, tmp_path / "x.mp4", failures.append, whole_episodes=whole_episodes)
    assert result.failed == [second.key]
    assert "RAM at the end" in failures[0]
    if whole_episodes:  # both segments are of one episode, which ends with the second
        assert (result.exported, video_files(tmp_path)) == ([], [])
        return
    assert (result.exported, pictures_of(tmp_path / "x.mp4")) == ([60], 61)
    await store.put(first.key, diverging(await store.get(first.key)))
    assert (await export_video(settings, chosen, tmp_path / "y.mp4", failures.append)).exported == []
    assert not (tmp_path / "y.mp4").exists()


def diverging(raw: bytes) -> bytes:
    """The archive of a segment whose replay ends in another state."""
    facts, members = parts(raw)
    return write_segment({**facts, "ram_end": "f" * 64}, members)


async def test_no_video_is_written_without_a_matching_segment(store: Store, tmp_path: Path) -> None:
    settings = ExporterSettings(store=StoreSettings(url=f"file://{tmp_path}"), export={"scale": 1})
    selection = SegmentSelection.parse("walk", None, None, None, 3)  # nothing is scored
    assert (await export_video(settings, selection, tmp_path / "x.mp4", pytest.fail)).exported == []
    assert not video_files(tmp_path)


def video_files(folder: Path) -> list[Path]:
    return list(folder.glob("*.mp4*"))


async def test_two_runs_export_into_one_directory_without_clashes(store: Store, tmp_path: Path) -> None:
    other = RunId("walk-b")  # its segments have equal ids, because ids follow the order of play
    start = EpochStart.from_bytes(await store.get(keys.epoch_start(RUN, 0)))
    await store.put(keys.epoch_start(other, 0), start.model_copy(update={"run": other}).to_bytes())
    for entry in await list_segments(store, RUN):
        facts, members = parts(await store.get(entry.key))
        key = keys.segments_prefix(other) + entry.key.removeprefix(keys.segments_prefix(RUN))
        await store.put(key, write_segment({**facts, "run": other}, members))
    settings = ExporterSettings(store=StoreSettings(url=f"file://{tmp_path}"), export={"scale": 1, "frames": False})
    first = await export_segments(
        settings, SegmentSelection.parse(RUN, None, None, None), tmp_path / "out", pytest.fail
    )
    second = await export_segments(
        settings, SegmentSelection.parse(other, None, None, None), tmp_path / "out", pytest.fail
    )
    for run, folders in ((RUN, first.exported), (other, second.exported)):
        assert len(folders) == 2
        for folder in folders:
            manifest = ExportManifest.from_bytes((folder / "manifest.json").read_bytes()).segment
            assert manifest.run == run
            place = f"episodes/exports/{folder.relative_to(tmp_path / 'out')}/"
            assert place == keys.export_prefix(run, 0, manifest.episode, manifest.segment)


def test_an_invalid_run_id_is_rejected() -> None:
    with pytest.raises(ValueError, match="is not the name of a run"):
        SegmentSelection.parse("../secrets", None, None, None)


OUTDATED = "recorded with emulator pyboy 0.0.1, but this is pyboy "


def cut(raw: bytes) -> bytes:
    return raw[:5000]


def outdated(raw: bytes) -> bytes:
    facts, members = parts(raw)
    return write_segment({**facts, "emulator": "pyboy 0.0.1"}, members)


@pytest.fixture
def archives(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keys of the recorded segments; the store, which `zelda` is configured to use, also holds another object."""
    monkeypatch.setenv("ZELDA_STORE__URL", f"file://{tmp_path}")
    monkeypatch.setenv("ZELDA_EXPORT__FRAMES", "false")
    found = [entry.key for entry in asyncio.run(list_segments(store, RUN))]
    asyncio.run(store.put(found[0].removesuffix(".zip") + ".txt", b"a note"))
    return found


def spoil(store: Store, key: str, how: Callable[[bytes], bytes]) -> None:
    asyncio.run(store.put(key, how(asyncio.run(store.get(key)))))


def test_an_export_shows_progress_and_omits_pictures_with_video_only(
    tmp_path: Path, archives: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ZELDA_EXPORT__FRAMES")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert exit_code_of(["export", "segments", RUN, "--video-only", "--to", str(tmp_path / "out")]) == OK
    shown = capsys.readouterr().err
    assert [shown.count(f"{done} of 2 segments") for done in (0, 1)] == [1, 1]
    written = {path.suffix for path in (tmp_path / "out").rglob("*.*")}
    assert ".mp4" in written
    assert ".png" not in written


@pytest.mark.parametrize(("how", "reason"), [(cut, "not a segment archive: BadZipFile"), (outdated, OUTDATED)])
def test_a_failing_segment_is_reported_and_the_others_are_exported(
    store: Store, tmp_path: Path, archives: list[str], capsys: pytest.CaptureFixture[str],
    how: Callable[[bytes], bytes], reason: str,
) -> None:  # fmt: skip
    spoil(store, archives[0], how)
    assert exit_code_of(["export", "segments", RUN, "--to", str(tmp_path / "out")]) == FAILED
    printed = capsys.readouterr()
    assert f"{archives[0]}: " in printed.err
    assert reason in printed.err
    assert "zelda: 1 of 2 segments could not be exported: " in printed.err
    (folder,) = printed.out.splitlines()
    assert folder.endswith(archives[1].removeprefix("episodes/episodes/").removesuffix(".zip"))
    assert [str(path.parent) for path in (tmp_path / "out").rglob("manifest.json")] == [folder]


def test_a_damaged_segment_is_reported_and_missing_in_the_data_set(
    store: Store, tmp_path: Path, archives: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(store, archives[0], cut)
    file = tmp_path / "walk.parquet"
    assert exit_code_of(["export", "dataset", RUN, "--to", str(file)]) == FAILED
    printed = capsys.readouterr()
    assert f"{archives[0]}: not a segment archive" in printed.err
    assert "zelda: 1 of 2 segments could not be exported: " in printed.err
    assert printed.out == f"{file}: 60 steps\n"
    assert pq.read_table(file).num_rows == 60


def test_nothing_is_written_if_every_segment_fails(
    store: Store, tmp_path: Path, archives: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for key in archives:
        spoil(store, key, cut)
    for command in ("segments", "dataset"):
        assert exit_code_of(["export", command, RUN, "--to", str(tmp_path / command)]) == FAILED
        printed = capsys.readouterr()
        assert "zelda: 2 of 2 segments could not be exported: " in printed.err
        assert printed.out == ""
        assert not (tmp_path / command).exists()


def test_a_damaged_segment_outside_the_selection_is_ignored(store: Store, tmp_path: Path, archives: list[str]) -> None:
    whole = archives[1].rpartition("/")[2].removesuffix(".zip")
    spoil(store, archives[0], cut)
    assert exit_code_of(["export", "segments", RUN, "--segment", whole, "--to", str(tmp_path / "out")]) == OK
    asyncio.run(store.put(keys.segments_prefix(RUN, 0) + "another-episode/another.zip", b"damaged"))
    asyncio.run(store.delete(archives[0]))
    episode = archives[1].split("/")[-2]
    assert exit_code_of(["export", "segments", RUN, "--episode", episode, "--to", str(tmp_path / "out")]) == OK


def test_a_missing_rom_is_reported_once(
    store: Store, tmp_path: Path, archives: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    start = EpochStart.from_bytes(asyncio.run(store.get(keys.epoch_start(RUN, 0))))
    config = start.config.model_copy(update={"game": "oracle-of-seasons"})
    asyncio.run(store.put(keys.epoch_start(RUN, 0), start.model_copy(update={"config": config}).to_bytes()))
    assert exit_code_of(["export", "segments", RUN, "--to", str(tmp_path / "out")]) == FAILED
    (sentence,) = capsys.readouterr().err.splitlines()
    assert "oracle-of-seasons needs your own ROM image" in sentence


async def test_a_data_set_that_cannot_be_renamed_leaves_no_partial_file(store: Store, tmp_path: Path) -> None:
    place = tmp_path / "place" / "walk.parquet"
    place.mkdir(parents=True)  # created while the run was read
    settings = ExporterSettings(store=StoreSettings(url=f"file://{tmp_path}"))
    with pytest.raises(OSError, match=r"walk\.parquet"):
        await export_dataset(settings, SegmentSelection.parse(RUN, None, None, None), place, pytest.fail)
    assert list(place.parent.iterdir()) == [place]
