"""The caption under a video: run, steps and scores; unknown facts are left out."""

from datetime import UTC, datetime

import pytest

from services.exporter.domain.caption import acting_notes, caption
from shared.contracts.scores import DimensionScore, JudgeResult, SegmentScores
from shared.contracts.segment import SegmentManifest
from tests.unit.judge.segment_factory import manifest

PLAYED = SegmentManifest.model_validate(
    {**manifest(first_step=300, steps=60, milestones_start=2, milestones_end=3), "members": {}}
)
RUN_LINES = ["demo  epoch 0  steps 300-359", "milestones 2 -> 3 of 9"]


def scores(status: str, weighted: float | None) -> SegmentScores:
    dimension = {"votes": [3, 3, 4], "value": 0.6, "unanimous": False, "spread": 1}
    judge = {"judge": "state", "route": "r", "model": "m", "prompt": "0" * 64, "status": "judged"}
    known = PLAYED.model_dump(include={"run", "epoch", "episode", "segment"})
    return SegmentScores.model_validate(
        {
            **known,
            "segment_key": "episodes/x",
            "segment_digest": "1" * 64,
            "rubric": "default",
            "status": status,
            "judges": [{**judge, "dimensions": {"progress": dimension}}] if weighted is not None else [],
            "weighted": weighted,
            "created": datetime(2026, 1, 1, tzinfo=UTC),
        }
    )


def test_a_judged_segment_shows_its_score_and_each_dimension() -> None:
    assert caption(PLAYED, scores("judged", 0.65)) == [*RUN_LINES, "judged 0.65:  progress 0.60"]


def test_a_gated_judge_has_no_value_in_the_caption() -> None:
    found = scores("judged", 0.6)
    other = found.judges[0].model_copy(update={"judge": "vision"})
    both = found.model_copy(update={"judges": [high(found.judges[0]), other], "gated": {"state": ["drift"]}})
    assert caption(PLAYED, both) == [*RUN_LINES, "judged 0.60:  progress 0.60"]


def high(result: JudgeResult) -> JudgeResult:
    """The result of a judge who voted 5 on progress."""
    best = DimensionScore(votes=[5, 5, 5], value=1.0, unanimous=True, spread=0)
    return result.model_copy(update={"dimensions": {"progress": best}})


@pytest.mark.parametrize("status", ["abstained", "dead"])
def test_a_segment_without_a_score_shows_its_status(status: str) -> None:
    assert caption(PLAYED, scores(status, None)) == [*RUN_LINES, f"judges: {status}"]


def test_an_unjudged_segment_has_no_line_about_judges() -> None:
    assert caption(PLAYED, None) == RUN_LINES


def test_assisted_segment_names_who_acted() -> None:
    actors = ["policy", "planner", "planner", "guidance"]
    assert caption(PLAYED, None, actors) == [*RUN_LINES, "steps by:  policy 1  planner 2  guidance 1"]
    assert acting_notes(actors) == ["", "acts: policy", "acts: planner", "acts: planner", "acts: guidance"]
    assert acting_notes([]) == []
