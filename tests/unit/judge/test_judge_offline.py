"""`zelda judge`: a pass over recorded segments by rules, another rubric version, and a comparison of both."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from cli.commands.judge import compare, segments
from cli.errors import FAILED, NOT_FOUND, UNREACHABLE, USAGE, CliError
from services.judge.offline import compare as comparison
from services.judge.offline import rejudge
from services.judge.offline.compare import _kappa
from services.judge.offline.compare import compare as compared
from services.judge.runtime import JudgeRuntime
from shared.contracts.envelope import Envelope
from shared.contracts.ids import EpisodeId, SegmentId
from shared.errors import Transient
from shared.store import keys
from shared.store.object_store import local_store
from shared.store.port import Store
from tests.rules import RulesServer
from tests.unit.judge.bad_servers import refusing_url
from tests.unit.judge.segment_factory import RUN, archive, recorded, walk

NUMBER = 12


@pytest.fixture
async def recorded_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory store with a run of twelve segments."""
    for bucket in keys.BUCKETS:
        (tmp_path / bucket).mkdir()
    store = local_store(tmp_path)
    for number in range(NUMBER):
        changes = {**walk(1 + number % 6), 3: {"rupees": number}}
        if number % 3 == 0:
            changes[30] = {"treasures": ["sword"]}
        raw = archive(f"s{number}", changes, index=number, milestones_end=int(number % 3 == 0) + number % 6 // 3)
        await recorded(store, raw, f"s{number}")
    monkeypatch.setenv("ZELDA_STORE__URL", f"file://{tmp_path}")
    return tmp_path


def test_rules_pass_judges_all_segments_and_a_second_pass_none(
    recorded_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    segments(RUN, rules=True, as_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "run": "demo",
        "rubric": "rules",
        "judged": NUMBER,
        "abstained": 0,
        "dead": 0,
        "before": 0,
    }
    segments(RUN, rules=True)
    assert f"already scored {NUMBER}" in capsys.readouterr().out


def test_a_run_that_is_deleted_during_the_pass_ends_it_with_a_sentence(
    recorded_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, judge_segment = local_store(recorded_run), rejudge._rejudge_segment

    async def after_a_deletion(*args: Any) -> str:
        await store.put(keys.deleted_run(RUN), b"{}")
        for entry in await store.list(keys.segments_prefix(RUN)):
            await store.delete(entry.key)
        return await judge_segment(*args)

    monkeypatch.setattr(rejudge, "_rejudge_segment", after_a_deletion)
    with pytest.raises(CliError, match="Run demo was deleted meanwhile, with its segments and scores") as caught:
        segments(RUN, rules=True)
    assert caught.value.code == NOT_FOUND


async def test_damaged_scores_are_named_and_not_called_scored(recorded_run: Path) -> None:
    store = local_store(recorded_run)
    await asyncio.to_thread(segments, RUN, rules=True)
    first, second, *_ = await store.list(keys.scores_prefix(RUN, 0, "rules"))
    for entry in (first, second):
        await store.put(entry.key, b'{"a": 1}')
    with pytest.raises(CliError, match=f"^{first.key} and 1 more: not readable as scores; delete them") as caught:
        await asyncio.to_thread(segments, RUN, rules=True)
    assert caught.value.code == FAILED
    for entry in (first, second):
        await store.delete(entry.key)
    await asyncio.to_thread(segments, RUN, rules=True)
    assert len(await store.list(keys.scores_prefix(RUN, 0, "rules"))) == NUMBER


async def test_foreign_objects_and_a_damaged_epoch_record_do_not_stop_a_pass(recorded_run: Path) -> None:
    store, prefix = local_store(recorded_run), keys.segments_prefix(RUN)
    for name in ("epoch_0/e1/Upload.zip", "epoch_0/e1/s1.zip.part", "epoch_x/e1/s1.zip", "epoch_0/s1.zip", "notes.zip"):
        await store.put(f"{prefix}{name}", b"foreign")
    await store.put(keys.epoch_finished(RUN, 0), b"{")
    await asyncio.to_thread(segments, RUN, rules=True)
    assert len(await store.list(keys.scores_prefix(RUN, 0, "rules"))) == NUMBER
    result = await compared(store, RUN, None, ["rules", "rules"])
    assert len(result.points) == NUMBER


def test_rubric_versions_are_compared_in_a_table_and_a_picture(
    recorded_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    segments(RUN, rules=True)
    segments(RUN, rules=True, rubric="v2")
    capsys.readouterr()
    picture = tmp_path / "compare.png"
    compare(RUN, "rules", "v2/rules", plot=picture)
    shown = capsys.readouterr().out
    assert f"segments judged by both: {NUMBER}" in shown
    assert "correlation with progress in the segment" in shown
    assert picture.read_bytes().startswith(b"\x89PNG")
    compare(RUN, "rules", "v2", as_json=True)
    result = json.loads(capsys.readouterr().out)
    assert result["rank_correlation"] == pytest.approx(1.0)
    assert result["kappa"] == 1.0
    assert result["mean_difference"] == 0.0
    assert result["accounts"][0]["correlation"]["segment"] > 0.3


class CountedBytes(bytes):
    """The content of an object; counts how many exist at the same time."""

    now = most = 0

    def __new__(cls, content: bytes) -> "CountedBytes":
        CountedBytes.now += 1
        CountedBytes.most = max(CountedBytes.most, CountedBytes.now)
        return super().__new__(cls, content)

    def __del__(self) -> None:
        CountedBytes.now -= 1


async def test_comparison_holds_few_archives_at_a_time(recorded_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await asyncio.to_thread(segments, RUN, rules=True)
    store = local_store(recorded_run)
    whole = store.get

    async def pinned(key: str, digest: str | None = None) -> bytes:
        return CountedBytes(await whole(key, digest))

    monkeypatch.setattr(store, "get", pinned)
    monkeypatch.setattr(comparison, "CONCURRENT_READS", 2)
    await compared(store, RUN, None, ["rules", "rules"])
    assert 0 < CountedBytes.most <= 4


async def test_comparison_omits_dead_segments(recorded_run: Path) -> None:
    store = local_store(recorded_run)
    await recorded(store, b"not an archive", "broken")
    for rubric in ("rules", "v2"):
        await asyncio.to_thread(segments, RUN, rules=True, rubric=rubric)
    result = await compared(store, RUN, None, ["rules", "v2"])
    assert len(result.points) == NUMBER
    assert [account.judged for account in result.summaries] == [NUMBER, NUMBER]


def test_order_agreement_covers_all_segments() -> None:
    # The first 25 are put above all others by both sides; the others, by the second side, in the opposite order.
    best = [(1.0 + number, 1.0 + number, 0) for number in range(25)]
    rest = [(-float(number), -1000.0 + number, 0) for number in range(975)]
    found = _kappa([*best, *rest])
    assert found is not None
    assert found < -0.5
    assert _kappa([*best, *rest]) == found


def test_values_that_differ_by_rounding_alone_are_equal() -> None:
    tied, other = 0.1 + 0.2, 0.3
    assert tied != other
    points = [(tied, 0.5, 0), (other, 0.5, 0), (0.9, 0.9, 1)]
    assert _kappa(points) == 1.0, "both sides put the third above the others, which are equal"


async def test_comparison_skips_unreadable_objects_only(recorded_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = local_store(recorded_run)
    for rubric in ("rules", "v2"):
        await asyncio.to_thread(segments, RUN, rules=True, rubric=rubric)
    await store.delete(keys.segment(RUN, 0, EpisodeId("e1"), SegmentId("s1")))
    await store.put(keys.segment(RUN, 0, EpisodeId("e1"), SegmentId("s2")), b"damaged")
    await store.put(keys.score(RUN, 0, SegmentId("s3"), "v2"), b"{")
    capsys.readouterr()
    await asyncio.to_thread(compare, RUN, "rules", "v2", as_json=True)
    out, err = capsys.readouterr()
    assert [account["judged"] for account in json.loads(out)["accounts"]] == [NUMBER - 2, NUMBER - 3]
    assert err.count("object skipped in comparison") == 3


async def test_expired_recordings_are_named_as_the_reason(recorded_run: Path) -> None:
    await asyncio.to_thread(segments, RUN, rules=True)
    store = local_store(recorded_run)
    for number, entry in enumerate(await store.list(keys.segments_prefix(RUN))):
        await store.put(entry.key, b"damaged") if number else await store.delete(entry.key)
    with pytest.raises(LookupError, match="scores under rubric 'rules', but none of their recordings is readable"):
        await compared(store, RUN, None, ["rules", "rules"])
    for entry in await store.list(keys.segments_prefix(RUN)):
        await store.delete(entry.key)
    with pytest.raises(LookupError, match="scores under rubric 'rules', but their recordings have expired"):
        await compared(store, RUN, None, ["rules", "rules"])
    with pytest.raises(LookupError, match="no scores under rubric 'rules' in epoch 3; its rubrics in epoch 3: none"):
        await compared(store, RUN, 3, ["rules", "rules"])


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        ("rules", "v9", "no scores under rubric 'v9'"),
        ("rules/nobody", "rules", "no judge 'nobody' in rubric 'rules'; its judges: rules"),
    ],
)
def test_unknown_side_is_named(recorded_run: Path, first: str, second: str, says: str) -> None:
    segments(RUN, rules=True)
    with pytest.raises(CliError, match=says) as left:
        compare(RUN, first, second)
    assert left.value.code == NOT_FOUND


def test_without_a_server_nothing_is_judged_and_nothing_is_lost(
    recorded_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ZELDA_JUDGE__DEFAULT_URL", refusing_url())
    with pytest.raises(CliError, match=r"route rules-.*ConnectError.*: start its server, or name other") as left:
        segments(RUN)
    assert left.value.code == UNREACHABLE
    with RulesServer() as server:
        monkeypatch.setenv("ZELDA_JUDGE__DEFAULT_URL", server.url)
        segments(RUN)
    assert f"judged {NUMBER}, abstained 0" in capsys.readouterr().out


def test_reason_of_a_retry_is_printed_once(
    recorded_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judged, failures = rejudge._rejudge_segment, iter([Transient("the store is away")] * 3)

    async def at_first_away(store: Store, runtime: JudgeRuntime, event: Envelope) -> str:
        for failure in failures:
            raise failure
        return await judged(store, runtime, event)

    monkeypatch.setattr(rejudge, "_rejudge_segment", at_first_away)
    monkeypatch.setattr(rejudge, "RETRY_S", 0.01)
    segments(RUN, rules=True)
    out, err = capsys.readouterr()
    assert f"judged {NUMBER}" in out
    assert err.count("retrying: the store is away") == 1


def test_invalid_arguments_are_reported(recorded_run: Path) -> None:
    with pytest.raises(CliError, match="is not the name of a run") as left:
        segments("../etc", rules=True)
    assert left.value.code == USAGE
    with pytest.raises(CliError, match="rubric version: rubric") as left:
        segments(RUN, rules=True, rubric="V 2")
    assert left.value.code == USAGE
    with pytest.raises(CliError, match="There is no run nobody: list the runs") as left:
        segments("nobody", rules=True)
    assert left.value.code == NOT_FOUND
