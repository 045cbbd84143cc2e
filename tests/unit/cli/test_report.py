"""The report shows the contents of the store, names what is missing, and never executes scripts of others."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.console import EPOCH_COLUMNS, epoch_cells
from cli.report.data import collect_report_data, count_rooms
from cli.report.page import render_report
from cli.report.write import write_report
from shared.contracts.ids import EpisodeId
from shared.contracts.progress import RunSummary
from shared.errors import ContractError
from shared.store import keys
from shared.store.memory import MemoryStore
from shared.store.port import NotFound
from tests.unit.coordinator.harness import RUN, Harness, segment
from tests.unit.judge import segment_factory


def archive(rooms: list[tuple[int, int]]) -> bytes:
    """A segment archive with one state in each of these rooms."""
    return segment_factory.archive(lines=[json.dumps({"group": g, "room": r}) for g, r in rooms], key_frames=[])


async def played(kind: type[MemoryStore] = MemoryStore) -> Harness:
    """A finished run of two epochs with segments in two rooms."""
    harness = Harness(kind)
    await harness.create_run(epochs=2, world="garden")
    await harness.passes()
    for epoch in range(2):
        await harness.train(epoch, metrics={"milestones_mean": 1.0 + epoch, "return_mean": 3.0})
        for number in range(4):
            name = segment(epoch, number)
            await harness.store.put(
                keys.segment(RUN, epoch, EpisodeId(name[:9]), name), archive([(0, 17), (0, 18), (3, 1)])
            )
        await harness.judge(epoch)
        await harness.train_reward_model(epoch, passed=epoch == 0)
        await harness.passes(2)
    return harness


async def test_the_report_is_one_page_with_table_and_pictures(tmp_path: Path) -> None:
    harness = await played()
    data = await collect_report_data(harness.store, RUN)
    assert data.rooms[0] == {(0, 17): 4, (0, 18): 4, (3, 1): 4}
    write_report(data, tmp_path / "demo")
    text = (tmp_path / "demo" / "report.html").read_text()
    assert text.count("<svg") == 4
    assert "group 3: steps in each room" in text
    assert "src=" not in text
    assert "No judged segment has a video." in text
    summary = RunSummary.from_bytes((tmp_path / "demo" / "summary.json").read_bytes())
    assert [row.epoch for row in summary.epochs] == [0, 1]


class Asked(MemoryStore):
    """A store that signals the first read of the summary."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__(clock)
        self.summary = asyncio.Event()

    async def get(self, key: str, digest: str | None = None) -> bytes:
        try:
            return await super().get(key, digest)
        finally:
            if key == keys.run_summary(RUN):
                self.summary.set()


async def test_the_report_waits_for_the_final_summary() -> None:
    harness = Harness(Asked)
    await harness.create_run(epochs=1)
    await harness.passes()
    await harness.train(0)
    await harness.judge(0, segments=3)
    await harness.passes()
    await harness.judge_segment(3)
    await harness.train_reward_model(0)
    await harness.reconciler.state_machine.step(RUN, 1)  # the record says that it is finished, the summary not yet
    assert await harness.state() == "finished"
    assert isinstance(harness.store, Asked)
    harness.store.summary.clear()
    gathering = asyncio.create_task(collect_report_data(harness.store, RUN, "finished"))
    await harness.store.summary.wait()
    await harness.reconciler.reconcile(RUN)
    (row,) = (await gathering).rows
    assert (row.segments_waiting, row.reward_model_accuracy) == (0, 0.8)


async def test_the_best_segment_with_a_video_is_embedded() -> None:
    harness = await played()
    name = segment(1, 2)
    await harness.store.put(f"{keys.export_prefix(RUN, 1, EpisodeId(name[:9]), name)}video.mp4", b"moving pictures")
    data = await collect_report_data(harness.store, RUN)
    assert data.best is not None
    assert data.best.scores.segment == name
    text = render_report(data)
    assert "data:video/mp4;base64,bW92aW5n" in text


async def test_the_report_opens_with_the_video_beside_its_votes() -> None:
    harness = await played()
    name = segment(1, 2)
    await harness.store.put(f"{keys.export_prefix(RUN, 1, EpisodeId(name[:9]), name)}video.mp4", b"moving pictures")
    data = await collect_report_data(harness.store, RUN)
    assert data.best is not None
    text = render_report(data)
    opening = text[text.index("<h1>") : text.index("<h2>Epochs</h2>")]
    assert "<video" in opening
    for judge in data.best.scores.judges:
        for dimension, score in judge.dimensions.items():
            votes = " ".join(map(str, score.votes))
            assert f"<td>{dimension}</td><td>{judge.judge}</td><td>{votes}</td>" in opening
    assert any(judge.dimensions for judge in data.best.scores.judges)


async def test_the_table_shows_the_milestones_of_each_evaluation() -> None:
    harness = await played()
    data = await collect_report_data(harness.store, RUN)
    (row, *_) = data.rows
    climbed = row.model_copy(update={"evaluation": {"milestones_mean": 1.43}})
    assert epoch_cells(climbed.model_dump())[EPOCH_COLUMNS.index("milestones")] == "1.43"
    assert epoch_cells(row.model_copy(update={"evaluation": None}).model_dump())[3] == "-"


async def test_unreadable_objects_are_skipped_and_named() -> None:
    harness = await played()
    score = (await harness.store.list(keys.scores_prefix(RUN, 0)))[0].key
    segments = [entry.key for entry in await harness.store.list(keys.segments_prefix(RUN, 1))]
    others = segment_factory.archive(lines=["{}"], key_frames=[], members_of="another segment")
    for key, raw in ((score, b"{"), (segments[0], b"PK"), (segments[1], others)):
        await harness.store.put(key, raw)
    await harness.store.put(f"{keys.segments_prefix(RUN, 1)}notes.txt", b"x")
    data = await collect_report_data(harness.store, RUN)
    assert data.unreadable == [score, segments[0], segments[1]]
    assert [len(scores) for scores in data.scores.values()] == [3, 4]
    assert data.rooms[1] == {(0, 17): 2, (0, 18): 2, (3, 1): 2}
    text = render_report(data)
    assert all(f"<li>{key}</li>" in text for key in data.unreadable)
    assert "notes.txt" not in text


class Expiring(MemoryStore):
    """A store whose segments expire while they are read."""

    async def get(self, key: str, digest: str | None = None) -> bytes:
        if key.endswith(".zip"):
            raise NotFound(f"no object {key}")
        return await super().get(key, digest)


async def test_expiring_segments_do_not_fail_the_report() -> None:
    harness = await played(Expiring)
    text = render_report(await collect_report_data(harness.store, RUN))
    assert "No recorded segment can be read." in text


def test_states_without_rooms_are_damaged() -> None:
    for lines in (['{"group": 1}'], ["[]"], ["no JSON"]):
        with pytest.raises(ContractError):
            count_rooms(segment_factory.archive(lines=lines, key_frames=[]))


async def test_text_from_judges_and_runs_is_never_markup() -> None:
    harness = await played()
    record = await harness.models.runs.latest(RUN)
    table = RunSummary.from_bytes(await harness.store.get(keys.run_summary(RUN)))
    hostile = table.model_copy(update={"reason": "<script>alert(1)</script>", "run": record.run})
    await harness.store.put(keys.run_summary(RUN), hostile.to_bytes())
    assert "<script>" not in render_report(await collect_report_data(harness.store, RUN))


async def test_a_run_without_a_finished_epoch_has_a_report() -> None:
    harness = Harness()
    await harness.create_run()
    await harness.passes(2)
    text = render_report(await collect_report_data(harness.store, RUN))
    assert "No segment was recorded." in text


async def test_an_unknown_run_has_no_report() -> None:
    with pytest.raises(NotFound):
        await collect_report_data(Harness().store, RUN)


async def test_the_map_of_a_long_epoch_is_labelled_as_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = await played()
    assert "even sample" not in render_report(await collect_report_data(harness.store, RUN))
    for module in ("data", "page"):
        monkeypatch.setattr(f"cli.report.{module}.MAX_SEGMENTS", 3)
    data = await collect_report_data(harness.store, RUN)
    assert data.rooms[0] == {(0, 17): 2, (0, 18): 2, (3, 1): 2}
    assert "an even sample of at most 3 segments per epoch" in render_report(data)


def test_rooms_are_counted_step_by_step() -> None:
    assert count_rooms(archive([(0, 1), (0, 1), (4, 2)])) == {(0, 1): 2, (4, 2): 1}
