"""`zelda judge`: a pass over recorded segments by rules alone, another rubric version, and the comparison of both."""

import asyncio
import json
from pathlib import Path

import pytest

from cli.__main__ import as_cli_error
from cli.commands.judge import compare, segments
from cli.errors import NOT_FOUND, UNREACHABLE, USAGE, CliError
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
from tests.unit.judge.bad_servers import nobody
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


def test_a_pass_by_rules_judges_all_and_a_second_one_nothing(
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
    assert f"had a score before {NUMBER}" in capsys.readouterr().out


async def test_strangers_among_the_segments_and_a_damaged_account_hold_up_no_pass(recorded_run: Path) -> None:
    store, prefix = local_store(recorded_run), keys.segments_prefix(RUN)
    for name in ("epoch_0/e1/Upload.zip", "epoch_0/e1/s1.zip.part", "epoch_x/e1/s1.zip", "epoch_0/s1.zip", "notes.zip"):
        await store.put(f"{prefix}{name}", b"a stranger")
    await store.put(keys.epoch_finished(RUN, 0), b"{")
    await asyncio.to_thread(segments, RUN, rules=True)
    assert len(await store.list(keys.scores_prefix(RUN, 0, "rules"))) == NUMBER
    result = await compared(store, RUN, None, ["rules", "rules"])
    assert len(result.points) == NUMBER


def test_two_rubric_versions_are_compared_in_a_table_and_a_picture(
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


class Held(bytes):
    """An object's content that counts how many of its kind are held at once."""

    now = most = 0

    def __new__(cls, content: bytes) -> "Held":
        Held.now += 1
        Held.most = max(Held.most, Held.now)
        return super().__new__(cls, content)

    def __del__(self) -> None:
        Held.now -= 1


async def test_a_comparison_holds_a_few_archives_at_a_time(recorded_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await asyncio.to_thread(segments, RUN, rules=True)
    store = local_store(recorded_run)
    whole = store.get

    async def pinned(key: str, digest: str | None = None) -> bytes:
        return Held(await whole(key, digest))

    monkeypatch.setattr(store, "get", pinned)
    monkeypatch.setattr(comparison, "CONCURRENT_READS", 2)
    await compared(store, RUN, None, ["rules", "rules"])
    assert 0 < Held.most <= 4


async def test_a_dead_segment_is_left_out_of_the_comparison(recorded_run: Path) -> None:
    store = local_store(recorded_run)
    await recorded(store, b"not an archive", "broken")
    for rubric in ("rules", "v2"):
        await asyncio.to_thread(segments, RUN, rules=True, rubric=rubric)
    result = await compared(store, RUN, None, ["rules", "v2"])
    assert len(result.points) == NUMBER
    assert [account.judged for account in result.summaries] == [NUMBER, NUMBER]


def test_the_agreement_in_order_is_that_of_all_segments_not_of_the_first_ones() -> None:
    # The first 25 are put above all others by both sides; the others, by the second side, in the opposite order.
    best = [(1.0 + number, 1.0 + number, 0) for number in range(25)]
    rest = [(-float(number), -1000.0 + number, 0) for number in range(975)]
    found = _kappa([*best, *rest])
    assert found is not None
    assert found < -0.5
    assert _kappa([*best, *rest]) == found


async def test_what_cannot_be_read_any_more_costs_its_own_place_in_the_comparison(
    recorded_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    assert err.count("left out of the comparison") == 3


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        ("rules", "v9", "no scores under rubric 'v9'"),
        ("rules/nobody", "rules", "no judge 'nobody' in rubric 'rules'; there are rules"),
    ],
)
def test_a_side_that_does_not_exist_is_named(recorded_run: Path, first: str, second: str, says: str) -> None:
    segments(RUN, rules=True)
    with pytest.raises(CliError, match=says) as left:
        compare(RUN, first, second)
    assert left.value.code == NOT_FOUND


def test_without_a_server_nothing_is_rejudge_segment_and_nothing_is_lost(
    recorded_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ZELDA_JUDGE__DEFAULT_URL", nobody())
    with pytest.raises(Transient, match=r"route qwen25-.*ConnectError") as left:
        segments(RUN)
    end = as_cli_error(left.value)
    assert end is not None
    assert end.code == UNREACHABLE
    with RulesServer() as server:
        monkeypatch.setenv("ZELDA_JUDGE__DEFAULT_URL", server.url)
        segments(RUN)
    assert f"judged {NUMBER}, abstained 0" in capsys.readouterr().out


def test_what_holds_a_pass_up_is_told_once(
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
    assert err.count("tried again until it works: the store is away") == 1


def test_wrong_words_are_told(recorded_run: Path) -> None:
    with pytest.raises(CliError, match="is not a RunId") as left:
        segments("../etc", rules=True)
    assert left.value.code == USAGE
    with pytest.raises(CliError, match="rubric version: rubric") as left:
        segments(RUN, rules=True, rubric="V 2")
    assert left.value.code == USAGE
    with pytest.raises(CliError, match="No recorded segment of nobody") as left:
        segments("nobody", rules=True)
    assert left.value.code == NOT_FOUND
