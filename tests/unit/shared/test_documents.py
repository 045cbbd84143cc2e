"""Computed values of documents, and their validation: plans, deadlines, means, non-finite numbers."""

from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from shared.bus.jetstream.bus import connect
from shared.bus.subjects import pattern
from shared.config.settings import BusSettings
from shared.contracts.driver import DriverHeartbeat
from shared.contracts.epoch import EpochFinishedRecord
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig
from shared.contracts.scores import SegmentScores, values_of
from shared.errors import ContractError, Fatal
from tests.events import segment_ready

SAMPLES = Path(__file__).parents[2] / "contract" / "samples"


@pytest.mark.parametrize(
    ("asked", "planned"), [({}, 3), ({"epochs": 7}, 7), ({"run_hours": 2}, None), ({"epochs": 7, "run_hours": 2}, 7)]
)
def test_a_run_has_three_epochs_unless_something_else_bounds_it(asked: dict[str, int], planned: int | None) -> None:
    assert RunConfig.model_validate(asked).planned_epochs == planned


def test_batch_fits_in_an_epoch_and_segment_in_an_episode() -> None:
    RunConfig(epoch_steps=600, batch_size=600, episode_length=300, segment_steps=300)
    with pytest.raises(ValidationError, match="lower batch_size"):
        RunConfig(epoch_steps=600, batch_size=601)
    with pytest.raises(ValidationError, match="no segment would be complete"):
        RunConfig(episode_length=300, segment_steps=301)


def test_the_deadline_counts_from_the_epochs_end_or_from_a_later_resume() -> None:
    finished = EpochFinishedRecord.from_bytes((SAMPLES / "epoch-finished.json").read_bytes())
    end, minute = finished.created, timedelta(minutes=1)
    assert finished.deadline(60) == end + minute
    assert finished.deadline(60, changed=end - minute) == end + minute
    assert finished.deadline(60, changed=end + minute) == end + 2 * minute


def test_dimension_rated_by_two_judges_counts_by_their_mean() -> None:
    scores = SegmentScores.from_bytes((SAMPLES / "segment-scores.json").read_bytes())
    one = next(result for result in scores.judges if result.dimensions)
    (name, rated), *_ = one.dimensions.items()
    lower = one.model_copy(update={"dimensions": {name: rated.model_copy(update={"value": rated.value / 2})}})
    assert values_of([one, lower])[name] == pytest.approx(rated.value * 0.75)


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"1e999"])
def test_non_finite_number_is_refused_with_its_field(number: bytes) -> None:
    raw = b'{"run": "demo", "epoch": 0, "time": "2026-01-01T00:00:00Z", "steps_per_s": %s}' % number
    with pytest.raises(ContractError, match=r"not a valid DriverHeartbeat: (steps_per_s|Invalid JSON): "):
        DriverHeartbeat.from_bytes(raw)


def test_bytes_that_are_no_document_are_refused() -> None:
    with pytest.raises(ContractError, match="not a valid DriverHeartbeat: Invalid JSON: "):
        DriverHeartbeat.from_bytes(b"{")


def test_subject_filter_matches_all_runs_or_one() -> None:
    kind = type(segment_ready().data)
    assert pattern(kind) == "zelda.v1.*.segment.ready"
    assert pattern(kind, RunId("demo")) == "zelda.v1.demo.segment.ready"


@pytest.mark.parametrize("text", ["judge", ":word", "judge:", "judge:word\ntrainer:word"])
async def test_malformed_credentials_are_refused_and_not_shown(text: str, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text(text)
    with pytest.raises(Fatal, match="must hold one line USER:PASSWORD") as caught:
        await connect(BusSettings(url="nats://127.0.0.1:9", credentials_file=tmp_path / "credentials"), "judge")
    assert "word\n" not in str(caught.value)
