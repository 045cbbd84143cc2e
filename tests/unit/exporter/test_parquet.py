"""The data set's columns: each fact of a segment stands in the column of its name, and an unknown one is null."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from services.exporter.adapters.parquet import SegmentRows, schema, table
from shared.contracts.scores import MAX_VOTE, DimensionScore, JudgeResult, SegmentScores
from shared.contracts.segment import SegmentManifest
from shared.game.observation import counters
from tests.unit.judge.segment_factory import manifest, rows

OBSERVATIONS = np.arange(8, dtype=np.float32).reshape(4, 2)  # three steps, two features
ACTIONS = np.array([1, 0, 4])
SHAPED = {
    "epoch": 2,
    "milestones_start": 3,
    "milestones_end": 5,
    "checkpoint": "1" * 64,
    "reward_model": "2" * 64,
    "reward_terms": {"rooms": 2.0, "deaths": -0.5},
}


def columns_of(facts: Mapping[str, Any], **known: Any) -> dict[str, list[Any]]:
    """The table of a segment of three steps, as lists by column."""
    played = SegmentManifest.model_validate({**manifest(steps=3, key_frames=[0, 3]), "members": {}, **facts})
    segment = SegmentRows(played, OBSERVATIONS, ACTIONS, known.pop("scores", None), **known)
    found: dict[str, list[Any]] = table(segment, schema(2)).to_pydict()
    return found


def judged_by(votes: Sequence[Sequence[int]], gated: Sequence[str] = ()) -> SegmentScores:
    """The scores of a segment on whose progress each judge cast these votes; its score is 0.5."""
    judges = [
        JudgeResult(
            judge=f"judge-{number}",
            route="r",
            model="m",
            prompt="0" * 64,
            status="judged",
            dimensions={
                "progress": DimensionScore(votes=list(cast), value=cast[0] / MAX_VOTE, unanimous=True, spread=0)
            },
        )
        for number, cast in enumerate(votes)
    ]
    known = {name: manifest()[name] for name in ("run", "epoch", "episode", "segment")}
    return SegmentScores(
        **known, segment_key="episodes/x", segment_digest="1" * 64, rubric="default", status="judged", judges=judges,
        weighted=0.5, gated={name: ["drift"] for name in gated}, created=datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip


def test_a_segments_facts_stand_in_every_row() -> None:
    found = columns_of(SHAPED)
    names = ("epoch", "milestones_start", "milestones_end", "policy", "reward_model", "segment_reward")
    assert [found[name] for name in names] == [[value] * 3 for value in (2, 3, 5, "1" * 64, "2" * 64, 1.5)]


def test_each_step_has_its_own_place_and_the_states_around_it() -> None:
    walked = rows(3, {0: {"group": 1, "room": 2, "x": 30, "y": 40}, 1: {"x": 31}, 2: {"room": 3, "y": 44}})
    found = columns_of({}, states=walked, potential=np.array([0.0, 0.25, 0.5, 1.0], np.float32))
    places = list(zip(*(found[name] for name in ("group", "room", "x", "y")), strict=True))
    assert places == [(1, 2, 30, 40), (1, 2, 31, 40), (1, 3, 31, 44)]
    assert found["potential"] == [0.0, 0.25, 0.5]
    assert found["next_potential"] == [0.25, 0.5, 1.0]
    assert (found["observation"][2], found["next_observation"][2]) == ([4.0, 5.0], [6.0, 7.0])


def test_each_step_has_the_episodes_counters_before_and_after_it() -> None:
    counts = np.arange(4 * counters.SIZE, dtype=np.uint16).reshape(4, counters.SIZE)
    counts[:, counters.INDEX["essences"]] = counters.UNKNOWN_COUNT
    found = columns_of({}, counts=counts)
    known = [[None if count == counters.UNKNOWN_COUNT else count for count in row] for row in counts.tolist()]
    assert found["counters"] == known[:3]
    assert found["next_counters"] == known[1:]
    assert json.loads(schema(2).metadata[b"counter_names"])[-1] == "essences"
    assert known[0][-1] is None


def test_the_votes_of_all_judges_on_a_dimension_are_kept() -> None:
    found = columns_of({}, scores=judged_by([[1, 2], [5]]))
    assert found["votes_progress"] == [[1, 2, 5]] * 3
    assert found["score"] == [0.5] * 3
    assert found["score_progress"] == pytest.approx([0.6] * 3)


def test_the_votes_of_a_gated_judge_stand_in_no_column() -> None:
    found = columns_of({}, scores=judged_by([[1, 2], [5]], gated=["judge-1"]))
    assert found["votes_progress"] == [[1, 2]] * 3
    assert found["score_progress"] == pytest.approx([0.2] * 3)
    assert schema(2).metadata[b"votes"].endswith(b"a gated judge (docs/judges.md) counts in no column")


def test_a_dimension_that_only_a_gated_judge_rated_is_null() -> None:
    found = columns_of({}, scores=judged_by([[5, 5]], gated=["judge-0"]))
    assert found["votes_progress"] == found["score_progress"] == [None] * 3


def test_what_is_not_known_of_a_segment_is_null() -> None:
    found = columns_of({})
    unknown = ("score", "score_progress", "votes_progress", "room", "potential", "next_potential", "counters",
               "next_counters", "segment_reward", "policy", "reward_model")  # fmt: skip
    assert {name: found[name] for name in unknown} == dict.fromkeys(unknown, [None] * 3)
