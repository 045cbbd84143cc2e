"""Votes into scores, and statistics about judges, checked against published values and another implementation."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY
from scipy import stats

from services.judge import telemetry
from services.judge.domain.agreement import cohen_kappa, krippendorff_alpha, ranks, spearman
from services.judge.domain.ledger_rows import CanaryRow, JudgeRow, LedgerPart, PairRow, SegmentRow, segment_row
from services.judge.domain.phases import DimensionWeights, Phase, select_phase, weighted_mean
from services.judge.domain.replies import Vote
from services.judge.domain.report import build_report
from services.judge.domain.vote_merge import VoteSchedule, has_quorum, merge
from services.judge.service.ledger_store import export_metrics
from shared.contracts.ids import EpisodeId, JudgeName, RunId, SegmentId
from shared.contracts.scores import SegmentScores, Usage, values_of
from shared.contracts.segment import SegmentManifest
from tests.unit.judge.segment_factory import manifest, states

# The worked example of K. Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011): four observers.
EXAMPLE = [
    [1, 1, 1],
    [2, 2, 3, 2],
    [3, 3, 3, 3],
    [3, 3, 3, 3],
    [2, 2, 2, 2],
    [1, 2, 3, 4],
    [4, 4, 4, 4],
    [1, 1, 2, 1],
    [2, 2, 2, 2],
    [5, 5, 5],
    [1, 1],
    [3],
]


def votes(*values: int) -> list[Vote]:
    return [Vote("", {"puzzle": value}) for value in values]


def test_alpha_matches_the_published_example() -> None:
    assert krippendorff_alpha(EXAMPLE) == pytest.approx(0.815, abs=0.0005)


def test_alpha_is_none_without_pairs_or_variation() -> None:
    assert krippendorff_alpha([]) is None
    assert krippendorff_alpha([[3], [4]]) is None
    assert krippendorff_alpha([[3, 3], [3, 3]]) is None
    assert krippendorff_alpha([[0, 0, 0], [5, 5, 5]]) == 1.0


@given(st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=2, max_size=40))
def test_alpha_does_not_exceed_one(units: list[list[int]]) -> None:
    value = krippendorff_alpha(units)
    assert value is None or value <= 1 + 1e-12


PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=60)


@given(PAIRS)
def test_rank_correlation_matches_scipy(points: list[tuple[int, int]]) -> None:
    xs, ys = [x for x, _ in points], [y for _, y in points]
    mine = spearman(xs, ys)
    if len(set(xs)) == 1 or len(set(ys)) == 1:
        assert mine is None
    else:
        assert mine == pytest.approx(stats.spearmanr(xs, ys).statistic, abs=1e-9)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=50))
def test_ranks_match_scipy(values: list[float]) -> None:
    assert ranks(values) == list(stats.rankdata(values))


def test_values_that_differ_by_rounding_alone_share_a_rank() -> None:
    assert spearman([0.1 + 0.2, 0.3, 0.9], [1, 2, 3]) == spearman([0.3, 0.3, 0.9], [1, 2, 3])
    assert spearman([0.1 + 0.2, 0.3, 0.3], [1, 2, 3]) is None


def test_two_points_have_no_correlation() -> None:
    assert spearman([1, 2], [1, 2]) is None


def test_kappa_is_agreement_beyond_chance() -> None:
    assert cohen_kappa(["A", "B"] * 10, ["A", "B"] * 10) == 1.0
    assert cohen_kappa(["A", "A", "B", "B"], ["A", "B", "A", "B"]) == 0.0
    assert cohen_kappa([], []) is None
    assert cohen_kappa(["A", "A"], ["A", "A"]) is None, "chance alone explains it"


def test_votes_are_merged_by_their_median() -> None:
    merged = merge(votes(1, 5, 4))["puzzle"]
    assert (merged.value, merged.unanimous, merged.spread) == (0.8, False, 4)
    assert merge(votes(2, 3))["puzzle"].value == 0.5
    assert merge(votes(3, 3, 3))["puzzle"].unanimous


@pytest.mark.parametrize(
    ("values", "asked", "more"),
    [
        ((), 0, 3),
        ((3, 3, 3), 3, 0),
        ((3, 3, 4), 3, 0),
        ((1, 3, 5), 3, 4),
        ((2, 3), 3, 0),
        ((0, 5), 3, 4),
        ((3,), 3, 0),
        ((0, 0, 5, 5, 3, 3, 3), 7, 4),
        ((0, 5, 3, 3, 3, 3, 3), 7, 4),
        ((0, 3, 3, 3, 3, 3, 3), 7, 0),
        ((0, 5) * 5 + (0,), 11, 0),
    ],
)
def test_more_votes_are_requested_only_while_they_are_split(values: tuple[int, ...], asked: int, more: int) -> None:
    assert VoteSchedule().votes_to_request(votes(*values), asked) == more


def test_votes_with_just_enough_near_the_median_are_not_split() -> None:
    vote_schedule = VoteSchedule(sizes=(4, 8))
    assert vote_schedule.votes_to_request(votes(3, 3, 3, 0), 4) == 0
    assert vote_schedule.votes_to_request(votes(3, 3, 0, 0), 4) == 4


def test_two_valid_votes_of_three_are_a_quorum_and_one_is_not() -> None:
    assert [has_quorum(valid, 3) for valid in range(4)] == [False, False, True, True]
    assert not has_quorum(3, 7)
    assert not has_quorum(2, 4), "half is no majority"
    assert has_quorum(4, 7)
    assert has_quorum(1, 1)
    assert not has_quorum(0, 0)


def test_weighted_mean_covers_judged_dimensions_only() -> None:
    weights = DimensionWeights().as_dict()
    mean, share = weighted_mean(weights, {"progress": 1.0, "dialog": 0.0})
    assert mean == pytest.approx(2 / 3)
    assert share == pytest.approx(0.6)
    assert weighted_mean(weights, {}) == (None, 0.0)


def test_weights_that_do_not_sum_to_one_are_refused() -> None:
    with pytest.raises(ValueError, match="must sum to 1"):
        DimensionWeights(progress=0.9)


def test_first_matching_phase_applies_and_unknown_facts_match_none() -> None:
    phases = [
        Phase.model_validate({"name": "dungeon", "when": {"in_dungeon": True}}),
        Phase.model_validate({"name": "armed", "games": ["bramble:*"], "when": {"has_items": ["sword"]}}),
        Phase.model_validate({"name": "early", "when": {"lacks_items": ["sword"]}}),
    ]
    inside = states({0: {"in_dungeon": True, "treasures": ["sword"]}}, steps=1)[0]
    outside = states({0: {"treasures": ["sword"]}}, steps=1)[0]
    unknown = states({0: {"treasures": None, "in_dungeon": None}}, steps=1)[0]
    assert select_phase(phases, "bramble:vale", inside).name == "dungeon"
    assert select_phase(phases, "bramble:vale", outside).name == "armed"
    assert select_phase(phases, "other", outside).name == "any"
    assert select_phase(phases, "bramble:vale", unknown).name == "any"


@pytest.mark.parametrize(
    ("when", "fits"),
    [
        ({"groups": [0, 4]}, True),
        ({"groups": [4]}, False),
        ({"essences_at_least": 2}, True),
        ({"essences_at_least": 3}, False),
        ({"groups": [0], "essences_at_least": 3}, False),
        ({"lacks_items": ["sword"], "has_items": ["kite"]}, False),
    ],
)
def test_phase_applies_where_all_its_conditions_hold(when: dict[str, object], fits: bool) -> None:
    phase = Phase.model_validate({"name": "here", "when": when})
    end = states({0: {"group": 0, "essences": 2, "treasures": ["sword", "kite"]}}, steps=1)[0]
    nowhere = states({0: {"group": None, "essences": None, "treasures": None}}, steps=1)[0]
    assert (select_phase([phase], "bramble:vale", end).name == "here") == fits
    assert select_phase([phase], "bramble:vale", nowhere).name == "any"


def row(number: int, gained: int, value: float | None) -> SegmentRow:
    judges = [] if value is None else [JudgeRow(judge=JudgeName("state"), value=value, votes={"progress": [3, 3, 3]})]
    return SegmentRow(
        segment=SegmentId(f"s{number}"),
        episode=EpisodeId("e1"),
        index=number,
        gained=gained,
        status="abstained" if value is None else "judged",
        weighted=value,
        judges=judges,
    )


def test_report_correlates_scores_with_progress_now_and_next() -> None:
    gains = [0, 1, 0, 2, 0, 0, 3, 0]
    parts = [
        LedgerPart(replica="a", rows=[row(i, gain, 0.1 + 0.2 * gain) for i, gain in enumerate(gains[:4])]),
        LedgerPart(
            replica="b",
            rows=[row(i + 4, gain, 0.1 + 0.2 * gain) for i, gain in enumerate(gains[4:])] + [row(9, 1, None)],
            usage={"state": Usage(calls=8, prompt_tokens=800)},
            canary=[CanaryRow(judge=JudgeName("state"), change=0.2), CanaryRow(judge=JudgeName("state"), change=-0.1)],
        ),
        LedgerPart(replica="c", rows=[row(0, 0, 0.1)], usage={"state": Usage(calls=1, prompt_tokens=100)}),
    ]
    merged = build_report(RunId("demo"), 0, "default", parts, datetime(2026, 1, 1, tzinfo=UTC))
    state = merged.judges[JudgeName("state")]
    assert merged.segments == {"judged": 8, "abstained": 1}
    assert state.correlation.segment == pytest.approx(1.0)
    assert state.correlation.next is not None
    assert state.correlation.next < 0.5
    assert (state.usage.calls, state.usage.prompt_tokens) == (9, 900)
    assert state.drift == pytest.approx(0.05)
    assert state.drift_absolute == pytest.approx(0.15)


def canaries(*values: tuple[float, int]) -> float | None:
    rows = [CanaryRow(judge=JudgeName("state"), change=0, value=value, gained=gained) for value, gained in values]
    part = LedgerPart(replica="a", rows=[row(0, 0, 0.1)], canary=rows)
    merged = build_report(RunId("demo"), 1, "default", [part], datetime(2026, 1, 1, tzinfo=UTC))
    return merged.judges[JudgeName("state")].canary_accuracy


def test_canaries_of_known_progress_measure_a_judge() -> None:
    assert canaries((0.1, 0), (0.2, 0), (0.6, 1), (0.8, 2)) == 1.0
    assert canaries((0.5, 0), (0.5, 0), (0.5, 1), (0.5, 2)) == 0.5
    assert canaries((0.8, 0), (0.2, 0), (0.6, 1), (0.7, 2)) == pytest.approx(3 / 5)
    assert canaries((0.1, 0), (0.9, 1)) is None  # one pair says nothing
    assert canaries((0.1, 1), (0.2, 1), (0.3, 1), (0.4, 1)) is None  # nor do equal gains


def test_canary_values_that_differ_by_rounding_alone_are_equal() -> None:
    sums = [sum(votes) / 3 for votes in ([0.6, 0.4, 0.2], [0.2, 0.4, 0.6])]
    assert sums[0] < sums[1], "the same votes in another order"
    assert canaries((sums[0], 0), (sums[0], 0), (sums[1], 1), (sums[1], 2)) == 0.5


def test_next_gain_covers_the_three_following_segments() -> None:
    gains = [0, 0, 2, 0, 1, 0, 0, 3, 1, 0, 2, 0]
    ahead = [sum(gains[place + 1 : place + 4]) for place in range(len(gains))]
    rows = [row(place, gain, 0.1 * ahead[place]) for place, gain in enumerate(gains)]
    merged = build_report(
        RunId("demo"), 0, "default", [LedgerPart(replica="a", rows=rows)], datetime(2026, 1, 1, tzinfo=UTC)
    )
    assert merged.correlation.next == pytest.approx(1.0)
    other = [one.model_copy(update={"episode": EpisodeId(f"e{one.index}")}) for one in rows]
    merged = build_report(
        RunId("demo"), 0, "default", [LedgerPart(replica="a", rows=other)], datetime(2026, 1, 1, tzinfo=UTC)
    )
    assert merged.correlation.next is None, "no segment is followed by another one of its episode"


def test_report_counts_votes_agreement_abstentions_and_exhausted_budget() -> None:
    votes_of = {"progress": [3, 3, 3], "dialog": [1, 2, 3]}
    spoke = JudgeRow(judge=JudgeName("state"), value=0.5, votes=votes_of, unanimous=1)
    silent = JudgeRow(judge=JudgeName("state"))
    rows = [row(0, 0, None).model_copy(update={"judges": [one]}) for one in (spoke, silent)]
    rows[1] = rows[1].model_copy(update={"segment": SegmentId("s1")})
    parts = [LedgerPart(replica="a", rows=rows), LedgerPart(replica="b", exhausted=True)]
    merged = build_report(RunId("demo"), 0, "default", parts, datetime(2026, 1, 1, tzinfo=UTC))
    state = merged.judges[JudgeName("state")]
    assert (state.judged, state.abstained) == (1, 1)
    assert (merged.votes, state.votes, state.votes_per_segment) == (3, 3, 3.0)
    assert (merged.agreement, state.unanimous) == (0.5, 0.5)
    assert set(state.alpha) == {"progress", "dialog"}
    assert merged.budget_exhausted


def test_each_run_has_its_own_figures() -> None:
    for run, exhausted in (("first", False), ("second", True)):
        part = LedgerPart(replica="a", rows=[row(0, 0, None)], exhausted=exhausted)
        export_metrics(build_report(RunId(run), 0, "default", [part], datetime(2026, 1, 1, tzinfo=UTC)))
    name = "zelda_judge_budget_exhausted_state"
    assert [REGISTRY.get_sample_value(name, {"run": run}) for run in ("first", "second")] == [0, 1]
    assert {"first", "second"} <= telemetry.OF_RUNS.shown


def test_judge_that_sees_no_difference_has_no_position_bias() -> None:
    pairs = [PairRow(forward="equal", backward="equal", gap=0.0)] * 3 + [PairRow(forward="A", backward="B", gap=0.2)]
    merged = build_report(
        RunId("demo"), 0, "default", [LedgerPart(replica="a", pairs=pairs)], datetime(2026, 1, 1, tzinfo=UTC)
    )
    assert (merged.pairs.consistent, merged.pairs.bias, merged.pairs.kappa_with_votes) == (1.0, 0.0, 1.0)


def test_scores_that_differ_by_rounding_alone_are_an_equal_pair() -> None:
    pairs = [PairRow(forward="equal", backward="equal", gap=0.1 + 0.2 - 0.3)] * 2
    pairs += [PairRow(forward="A", backward="B", gap=0.2)] * 2
    merged = build_report(
        RunId("demo"), 0, "default", [LedgerPart(replica="a", pairs=pairs)], datetime(2026, 1, 1, tzinfo=UTC)
    )
    assert merged.pairs.kappa_with_votes == 1.0


def test_segment_gain_is_what_was_reached_within_it() -> None:
    facts = manifest(milestones_start=3, milestones_end=4)
    known = {name: facts[name] for name in ("run", "epoch", "episode", "segment", "created")}
    digests = {"segment_key": "episodes/x", "segment_digest": "1" * 64, "rubric": "default", "status": "dead"}
    scores = SegmentScores.model_validate({**known, **digests})
    assert segment_row(scores, SegmentManifest.model_validate({**facts, "members": {}})).gained == 1
    lost = {**facts, "milestones_end": 2, "members": {}}
    assert segment_row(scores, SegmentManifest.model_validate(lost)).gained == 0, "a milestone that is lost again"


def test_report_shows_a_judge_that_prefers_the_first_clip() -> None:
    pairs = [PairRow(forward="A", backward="A", gap=0.3)] * 6 + [PairRow(forward="A", backward="B", gap=0.2)] * 4
    merged = build_report(
        RunId("demo"), 0, "default", [LedgerPart(replica="a", pairs=pairs)], datetime(2026, 1, 1, tzinfo=UTC)
    )
    assert merged.pairs.consistent == 0.4
    assert merged.pairs.bias == pytest.approx(0.3)
    fair = [PairRow(forward="A", backward="B", gap=0.2), PairRow(forward="B", backward="A", gap=-0.2)]
    merged = build_report(
        RunId("demo"), 0, "default", [LedgerPart(replica="a", pairs=fair)], datetime(2026, 1, 1, tzinfo=UTC)
    )
    assert (merged.pairs.consistent, merged.pairs.bias, merged.pairs.kappa_with_votes) == (1.0, 0.0, 1.0)


def test_unjudged_weights_have_no_value() -> None:
    merged = build_report(RunId("demo"), 0, "default", [], datetime(2026, 1, 1, tzinfo=UTC))
    assert (merged.agreement, merged.correlation.segment, merged.pairs.bias, merged.votes) == (None, None, None, 0)
    assert values_of([]) == {}
