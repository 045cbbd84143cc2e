"""The report shows the contents of the store, names what is missing, and never executes scripts of others."""

import asyncio
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.runs.report_files import write_report
from services.coordinator.domain.verdict import CAUTION, verdict
from services.coordinator.report import data as report_data
from services.coordinator.report.data import collect_report_data
from services.coordinator.report.modules import one_script
from services.coordinator.report.page import render_report
from shared.contracts.epoch import ArchiveRef, ExploredArchive
from shared.contracts.ids import Digest, EpisodeId
from shared.contracts.progress import RunSummary
from shared.store import keys
from shared.store.memory import MemoryStore
from shared.store.port import NotFound
from tests.unit.coordinator.api_client import VIEWER, client
from tests.unit.coordinator.earlier_run import EARLIER, add_earlier_run
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


def embedded(text: str) -> Any:
    """The data in a report."""
    found = re.search(r'<script type="application/json" id="data">(.*)</script>', text)
    assert found is not None
    return json.loads(found[1])


async def test_the_report_is_one_file_with_all_data(tmp_path: Path) -> None:
    harness = await played()
    data = await collect_report_data(harness.store, RUN)
    assert {(room.group, room.room): room.steps for room in data.rooms.rooms} == {(0, 17): 8, (0, 18): 8, (3, 1): 8}
    write_report(data, tmp_path / "demo")
    text = (tmp_path / "demo" / "report.html").read_text()
    assert not re.search(r"(src|href)=.?(http|/)", text.partition("<script>")[0])
    found = embedded(text)
    assert [row["epoch"] for row in found["summary"]["epochs"]] == [0, 1]
    assert (found["rooms"]["read"], found["rooms"]["recorded"]) == (8, 8)
    summary = RunSummary.from_bytes((tmp_path / "demo" / "summary.json").read_bytes())
    assert [row.epoch for row in summary.epochs] == [0, 1]


async def test_the_report_says_what_the_run_explored_before_it_began() -> None:
    harness = await played()
    plain = await collect_report_data(harness.store, RUN)
    assert "explored" not in render_report(plain).partition("<script")[0]
    archive = ArchiveRef(key="models/a", digest=Digest("0" * 64))
    explored = ExploredArchive(
        run=RUN, steps=45_000, seconds=30, cells=90, path_steps=719, archive=archive, created=harness.time
    )
    await harness.store.put(keys.exploration(RUN, ended=True), explored.to_bytes())
    data = await collect_report_data(harness.store, RUN)
    said = render_report(data).partition("<script")[0]
    assert "explored 45,000 steps without a network" in said
    assert "719 steps long" in said
    await harness.store.put(keys.exploration(RUN, ended=True), b"damaged")
    damaged = await collect_report_data(harness.store, RUN)
    assert damaged.explored is None
    assert keys.exploration(RUN, ended=True) in damaged.unreadable


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
    await harness.reconciler.state_machine.step(
        RUN, 1, lambda: 1
    )  # the record says that it is finished, the summary not yet
    assert await harness.state() == "finished"
    assert isinstance(harness.store, Asked)
    harness.store.summary.clear()
    gathering = asyncio.create_task(collect_report_data(harness.store, RUN, "finished"))
    await harness.store.summary.wait()
    await harness.reconciler.reconcile(RUN)
    (row,) = (await gathering).rows
    assert (row.segments_waiting, row.reward_model_accuracy) == (0, 0.8)


def video_key(epoch: int, number: int) -> str:
    """The key of the video of one segment."""
    name = segment(epoch, number)
    return f"{keys.export_prefix(RUN, epoch, EpisodeId(name[:9]), name)}video.mp4"


async def test_first_and_best_play_are_embedded_with_their_votes(tmp_path: Path) -> None:
    harness = await played()
    low = harness.scores(0, 0).model_copy(update={"weighted": 0.1})
    await harness.store.put(keys.score(RUN, 0, low.segment), low.to_bytes())
    await harness.store.put(video_key(0, 0), b"early")
    await harness.store.put(video_key(1, 2), b"moving pictures")
    data = await collect_report_data(harness.store, RUN)
    found = embedded(render_report(data))
    assert (found["first"]["video"], found["best"]["video"]) == (
        "data:video/mp4;base64,ZWFybHk=",
        "data:video/mp4;base64,bW92aW5nIHBpY3R1cmVz",
    )
    assert found["first"]["scores"]["weighted"] == 0.1
    assert found["best"]["scores"]["segment"] == segment(1, 2)
    assert found["best"]["scores"]["judges"][0]["dimensions"]["progress"]["votes"] == [3, 3, 4]
    write_report(data, tmp_path)
    assert (tmp_path / "best.mp4").read_bytes() == b"moving pictures"


async def test_key_frames_stand_in_for_a_missing_video() -> None:
    harness = Harness()
    await add_earlier_run(harness.store)
    data = await collect_report_data(harness.store, EARLIER)
    assert data.best is not None
    assert data.best.video is None
    assert [frame[:4] for frame in data.best.frames] == [b"\x89PNG"] * 8
    assert data.first is None  # it is the best
    assert data.pictures
    assert {png[:4] for png in data.pictures.values()} == {b"\x89PNG"}


async def test_a_segment_exported_without_a_video_does_not_end_the_report() -> None:
    harness = await played()
    await harness.store.put(video_key(1, 1).replace("video.mp4", "manifest.json"), b"{}")
    await harness.store.put(video_key(1, 2), b"moving pictures")
    data = await collect_report_data(harness.store, RUN)
    assert data.best is not None
    assert data.best.video == b"moving pictures"


async def test_unreadable_objects_are_skipped_and_named() -> None:
    harness = await played()
    score = (await harness.store.list(keys.scores_prefix(RUN, 0)))[0].key
    segments = [entry.key for entry in await harness.store.list(keys.segments_prefix(RUN, 1))]
    others = segment_factory.archive(lines=["{}"], key_frames=[], members_of="another segment")
    for key, raw in ((score, b"{"), (segments[0], b"PK"), (segments[1], others)):
        await harness.store.put(key, raw)
    await harness.store.put(f"{keys.segments_prefix(RUN, 1)}notes.txt", b"x")
    data = await collect_report_data(harness.store, RUN)
    assert data.unreadable == [segments[0], segments[1], score]
    assert {(room.group, room.room): room.steps for room in data.rooms.rooms} == {(0, 17): 6, (0, 18): 6, (3, 1): 6}
    text = render_report(data)
    assert embedded(text)["unreadable"] == data.unreadable
    assert "notes.txt" not in text


class Expiring(MemoryStore):
    """A store whose segments expire while they are read."""

    async def get(self, key: str, digest: str | None = None) -> bytes:
        if key.endswith(".zip"):
            raise NotFound(f"no object {key}")
        return await super().get(key, digest)


async def test_expiring_segments_do_not_fail_the_report() -> None:
    harness = await played(Expiring)
    data = await collect_report_data(harness.store, RUN)
    assert (data.rooms.rooms, data.rooms.recorded, len(data.unreadable)) == ([], 8, 8)


async def test_text_from_judges_and_runs_is_never_markup() -> None:
    harness = await played()
    record = await harness.models.runs.latest(RUN)
    table = RunSummary.from_bytes(await harness.store.get(keys.run_summary(RUN)))
    rows = [row.model_copy(update={"alarm": "</script><script>alert(1)</script>"}) for row in table.epochs]
    hostile = table.model_copy(update={"reason": "<script>alert(1)</script>", "run": record.run, "epochs": rows})
    await harness.store.put(keys.run_summary(RUN), hostile.to_bytes())
    text = render_report(await collect_report_data(harness.store, RUN))
    assert "<script>alert" not in text
    assert text.count("</script>") == 2


async def test_a_run_without_a_finished_epoch_has_a_report() -> None:
    harness = Harness()
    await harness.create_run()
    await harness.passes(2)
    text = render_report(await collect_report_data(harness.store, RUN))
    assert embedded(text)["rooms"] == {"recorded": 0, "read": 0, "rooms": []}
    assert "No epoch has finished" in text


async def test_an_unknown_run_has_no_report() -> None:
    with pytest.raises(NotFound):
        await collect_report_data(Harness().store, RUN)


async def test_a_run_without_a_summary_says_that_it_comes(tmp_path: Path) -> None:
    harness = Harness()
    await harness.create_run()
    async with client(harness, tmp_path, VIEWER) as http:
        response = await http.get(f"/runs/{RUN}/report")
    assert response.status_code == 404
    assert response.json()["detail"] == f"run {RUN} has no summary yet: it appears within seconds of the start."


async def test_the_map_of_a_long_run_is_an_even_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = await played()
    monkeypatch.setattr(report_data, "MAX_SEGMENTS", 3)
    rooms = (await collect_report_data(harness.store, RUN)).rooms
    assert (rooms.read, rooms.recorded) == (3, 8)


async def test_the_page_downloads_what_the_command_writes(tmp_path: Path) -> None:
    harness = await played()
    async with client(harness, tmp_path, VIEWER) as http:
        response = await http.get(f"/runs/{RUN}/report")
        assert (await http.get("/runs/nope/report")).status_code == 404
    assert response.headers["content-disposition"] == f'attachment; filename="{RUN}.html"'
    assert response.text == render_report(await collect_report_data(harness.store, RUN))


def test_modules_become_one_script_in_the_order_of_their_imports() -> None:
    texts = {
        "/a/main.js": 'import { one } from "./parts/one.js";\nrun(one);',
        "/a/parts/one.js": 'import {\n  two,\n} from "./two.js";\nexport const one = two + 1;',
        "/a/parts/two.js": "export function two() {}\nexport async function three() {}",
    }
    script = one_script(texts.__getitem__, "/a/main.js")
    places = [script.index(f'modules["{path}"] = ') for path in ("/a/parts/two.js", "/a/parts/one.js", "/a/main.js")]
    assert places == sorted(places)
    assert "return { two, three };" in script
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)


async def test_the_verdict_says_in_words_what_happened() -> None:
    harness = await played()
    summary = RunSummary.from_bytes(await harness.store.get(keys.run_summary(RUN)))
    assert verdict(summary) == [
        "Milestones per training episode rose from 1.00 to 2.00 between epoch 0 and epoch 1.",
        "The judges scored 8 of 8 recorded segments; their votes were unanimous in 50% of the dimensions.",
        "1 of 2 reward models may shape; 1 of 2 epochs were shaped by one.",
        "The reward model of epoch 1 is not used: it missed its gates.",
        CAUTION,
    ]
    fallen = [row.model_copy(update={"evaluation": {"milestones_mean": 3.0 - row.epoch}}) for row in summary.epochs]
    fallen[1] = fallen[1].model_copy(update={"alarm": "scores rise while milestones fall"})
    sentences = verdict(summary.model_copy(update={"epochs": fallen}))
    assert sentences[0] == "Milestones per evaluation episode fell from 3.00 to 2.00 between epoch 0 and epoch 1."
    assert "Alarm after epoch 1: scores rise while milestones fall" in sentences
    noisy = [row.model_copy(update={"evaluation": {**(row.evaluation or {}), "milestones_sem": 0.6}}) for row in fallen]
    doubted = verdict(summary.model_copy(update={"epochs": noisy}))[0]
    assert doubted.endswith("between epoch 0 and epoch 1, which chance alone could explain.")
    equal = [row.model_copy(update={"evaluation": {"milestones_mean": 2.0, "milestones_sem": 0.6}}) for row in fallen]
    stayed = verdict(summary.model_copy(update={"epochs": equal}))[0]
    assert stayed == "Milestones per evaluation episode stayed at 2.00 between epoch 0 and epoch 1."
    unknown = fallen[0].model_copy(update={"reason": "not used: it reads obs/v9, which this version does not know"})
    refused = verdict(summary.model_copy(update={"epochs": [unknown, fallen[1]]}))
    assert "0 of 2 reward models may shape; 1 of 2 epochs were shaped by one." in refused, "its gates are not all"
    assert "The reward model of epoch 1 is not used: it missed its gates." in refused, "the newest is named"
    assert "only one measured" in verdict(summary.model_copy(update={"epochs": fallen[:1]}))[0]
