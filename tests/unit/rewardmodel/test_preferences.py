"""Scores become pairs: capped per segment, soft where votes disagree, tied where scores are close."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from services.rewardmodel.domain.dataset import STORED_STEPS, subsample
from services.rewardmodel.domain.folds import fold_of, heldout_fold, training_rows, validation_fold
from services.rewardmodel.domain.preferences import (
    PairBlocks,
    PairingConfig,
    PreferencePairs,
    RatingArrays,
    label_pairs,
    rating_blocks,
    sample_pairs,
    stack_blocks,
)
from services.rewardmodel.domain.ratings import Rating, data_digest, rating_of
from services.rewardmodel.domain.segment_selection import FREE_OLD_SEGMENTS, select_ratings
from shared.contracts.ids import Digest, EpisodeId, JudgeName, SegmentId
from shared.contracts.scores import SegmentScores

RULES = PairingConfig()


def rated(*values: float, standard_error: float = 0.0, agreement: float = 1.0) -> RatingArrays:
    count = len(values)
    return RatingArrays(np.array(values), np.full(count, standard_error), np.full(count, agreement))


def pair(left: float, right: float, standard_error: float = 0.0, agreement: float = 1.0) -> PreferencePairs:
    both = rated(left, right, standard_error=standard_error, agreement=agreement)
    return label_pairs(both, np.array([0]), np.array([1]), RULES)


def blocks_of(
    segments: RatingArrays, rows: np.ndarray, rng: np.random.Generator, config: PairingConfig
) -> PairBlocks | None:
    """The minibatches of rated segments, as a training has them."""
    return stack_blocks(rating_blocks(segments, rows, rng, config)[0], config.tie_share)


def test_a_clear_difference_gives_a_nearly_hard_label() -> None:
    assert pair(0.8, 0.2).target[0] > 0.999
    assert pair(0.2, 0.8).target[0] < 0.001
    assert pair(0.8, 0.2).confident[0]


def test_close_scores_are_a_tie() -> None:
    for tie in (pair(0.50, 0.54), pair(0.55, 0.50)):  # a difference equal to the margin is a tie
        assert tie.target[0] == 0.5
        assert not tie.confident[0]


def test_both_scores_contribute_their_noise() -> None:
    assert pair(0.6, 0.5).target[0] == pytest.approx(ndtr(0.1 / np.hypot(RULES.noise, RULES.noise)))


def test_disagreeing_votes_soften_the_label_and_reduce_the_weight() -> None:
    sure, doubtful = pair(0.6, 0.5), pair(0.6, 0.5, standard_error=0.1, agreement=0.0)
    assert 0.5 < doubtful.target[0] < sure.target[0]
    assert doubtful.weight[0] == pytest.approx(0.25 * sure.weight[0])


@settings(max_examples=60)
@given(count=st.integers(0, 200), cap=st.integers(2, 30), seed=st.integers(0, 1_000))
def test_no_segment_is_in_more_pairs_than_the_cap(count: int, cap: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.choice([0.1, 0.1, 0.1, 0.5, 0.9], count) + rng.uniform(0, 0.01, count)
    rows = np.arange(count)
    blocks = blocks_of(rated(*values), rows, rng, PairingConfig(cap=cap))
    found = [sample_pairs(rated(*values), rows, rng, RULES, cap)] + ([blocks.flatten()] if blocks else [])
    for pairs in found:
        assert (pairs.first != pairs.second).all()
        assert np.bincount(np.concatenate([pairs.first, pairs.second, rows]), minlength=1).max(initial=1) <= cap + 1


@pytest.mark.parametrize("count", [2, 64, 65, 129, 200])
@pytest.mark.parametrize("cap", [2, 3, 4, 5, 20])
def test_every_segment_is_compared_under_any_cap(cap: int, count: int) -> None:
    values, rows = np.linspace(0, 1, count), np.arange(count)
    blocks = blocks_of(rated(*values), rows, np.random.default_rng(0), PairingConfig(cap=cap))
    assert blocks is not None
    pairs = blocks.flatten()
    assert set(np.concatenate([pairs.first, pairs.second])) == set(rows)


def test_with_few_segments_every_pair_is_used_once() -> None:
    pairs = sample_pairs(rated(*np.linspace(0, 1, 12)), np.arange(12), np.random.default_rng(0), RULES)
    assert len({frozenset(ends) for ends in zip(pairs.first, pairs.second, strict=True)}) == 12 * 11 // 2 == len(pairs)


def test_pairs_far_apart_in_score_are_oversampled() -> None:
    values, rows = np.linspace(0, 1, 64), np.arange(64)
    far = []
    for seed in range(20):
        blocks = blocks_of(rated(*values), rows, np.random.default_rng(seed), RULES)
        assert blocks is not None
        distance = np.abs(blocks.flatten().first - blocks.flatten().second)
        far.append(np.mean(np.minimum(distance, 64 - distance) > 16))
    assert np.mean(far) > 0.6


def test_flattened_blocks_keep_their_pairs_and_labels() -> None:
    values = np.where(np.arange(40) % 2, 0.3, 0.9)
    blocks = blocks_of(rated(*values), np.arange(40), np.random.default_rng(0), RULES)
    assert blocks is not None
    flat = blocks.flatten()
    again = label_pairs(rated(*values), flat.first, flat.second, RULES)
    assert np.array_equal(flat.target, again.target)
    assert np.array_equal(flat.confident, again.confident)
    assert 0 < flat.confident.sum() < len(flat)


def test_ties_have_at_most_their_share_of_the_weight() -> None:
    values = np.where(np.arange(300) % 20 == 0, 0.9, 0.3)
    blocks = blocks_of(rated(*values), np.arange(300), np.random.default_rng(0), RULES)
    assert blocks is not None
    ties = blocks.target == 0.5
    assert blocks.weight[ties].sum() <= RULES.tie_share * blocks.weight.sum() * 1.001
    assert blocks.weight[ties].sum() == pytest.approx(RULES.tie_share * blocks.weight.sum()), "no less than allowed"
    assert blocks.weight[~ties].sum() > 0


def test_ties_keep_their_weight_if_all_pairs_are_tied() -> None:
    blocks = blocks_of(rated(*[0.5] * 20), np.arange(20), np.random.default_rng(0), RULES)
    assert blocks is not None
    assert blocks.pairs > 0


def test_one_segment_gives_no_pairs() -> None:
    assert blocks_of(rated(0.5), np.arange(1), np.random.default_rng(0), RULES) is None


def scores(status: str = "judged", votes: tuple[int, ...] = (3, 3, 3), weight: float = 0.4) -> SegmentScores:
    dimension = {"votes": list(votes), "value": 0.6, "unanimous": len(set(votes)) == 1, "spread": 0}
    judge = {"judge": "state", "route": "r", "model": "m", "prompt": "0" * 64, "status": "judged"}
    return SegmentScores.model_validate(
        {
            "run": "demo",
            "epoch": 3,
            "episode": "e1",
            "segment": "s1",
            "segment_key": "episodes/x",
            "segment_digest": "1" * 64,
            "rubric": "default",
            "status": status,
            "judges": [{**judge, "dimensions": {"progress": dimension}}],
            "weights": {"progress": weight},
            "weighted": 0.6 if status == "judged" else None,
            "agreement": 1.0,
            "created": "2026-01-01T00:00:00Z",
        }
    )


@pytest.mark.parametrize("status", ["abstained", "dead"])
def test_an_unjudged_segment_has_no_rating(status: str) -> None:
    assert rating_of(scores(status), "d") is None


def test_more_and_closer_votes_reduce_the_standard_error() -> None:
    def doubt(*votes: int) -> float:
        found = rating_of(scores(votes=votes), "d")
        assert found is not None
        return found.standard_error

    assert doubt(3, 3, 3) < doubt(2, 3, 4) < doubt(0, 3, 5)
    assert doubt(2, 3, 4, 2, 3, 4, 3) < doubt(2, 3, 4)
    assert doubt(3, 3, 3) > 0


def test_a_gated_judge_adds_no_error_to_the_rating() -> None:
    one = scores()
    state = one.judges[0]
    noisy = state.model_copy(
        update={
            "judge": JudgeName("noisy"),
            "dimensions": {"progress": state.dimensions["progress"].model_copy(update={"votes": [0, 5]})},
        }
    )
    both = one.model_copy(update={"judges": [state, noisy], "gated": {JudgeName("noisy"): ["alpha 0.10 is below 0.5"]}})
    assert rating_of(both, "d") == rating_of(one, "d")
    assert rating_of(both.model_copy(update={"gated": {}}), "d") != rating_of(one, "d")


def standard_error(*judges: dict[str, tuple[int, ...]], **weights: float) -> float:
    """Standard error of a score with these votes by judge and dimension."""
    one = scores()
    results = [
        one.judges[0].model_copy(
            update={
                "dimensions": {
                    name: one.judges[0].dimensions["progress"].model_copy(update={"votes": list(votes)})
                    for name, votes in judge.items()
                }
            }
        )
        for judge in judges
    ]
    found = rating_of(one.model_copy(update={"judges": results, "weights": weights}), "d")
    assert found is not None
    return found.standard_error


def test_the_standard_error_follows_from_the_votes() -> None:
    alone = (0.5**2 / 3) ** 0.5 / 5  # each vote has an error of half a step; a step is a fifth
    assert standard_error({"progress": (3, 3, 3)}, progress=0.4) == pytest.approx(alone)
    twice = standard_error({"progress": (3, 3, 3)}, {"progress": (2, 2, 2)}, progress=0.4)
    assert twice == pytest.approx(alone / 2**0.5), "two judges of one dimension"
    both = standard_error({"progress": (3, 3, 3), "dialog": (0, 0, 0)}, progress=0.4, dialog=0.2)
    assert both == pytest.approx(alone * 5**0.5 / 3), "two thirds and one third of the weight"
    split = standard_error({"progress": (1, 3, 5)}, progress=0.4)
    assert split == pytest.approx((4 / 3) ** 0.5 / 5), "the variance of three votes has two degrees of freedom"
    assert standard_error({"progress": (0, 3, 5)}, dialog=1.0) == 0.0, "a dimension without weight adds no error"


def test_a_known_deviation_replaces_the_scatter_of_votes() -> None:
    def doubt(deviation: float) -> float:
        one = scores(votes=(3,))
        dimension = one.judges[0].dimensions["progress"].model_copy(update={"deviation": deviation})
        judge = one.judges[0].model_copy(update={"dimensions": {"progress": dimension}})
        found = rating_of(one.model_copy(update={"judges": [judge]}), "d")
        assert found is not None
        return found.standard_error

    assert doubt(1.5) == pytest.approx(1.5 / 5)
    assert doubt(0.1) == pytest.approx(0.5 / 5), "even a sure model only names the nearest anchor"


def test_missing_agreement_counts_as_none() -> None:
    lonely = rating_of(scores().model_copy(update={"agreement": None}), "d")
    assert lonely is not None
    assert lonely.agreement == 0.0
    assert rating_of(scores().model_copy(update={"weighted": None}), "d") is None


@pytest.mark.parametrize("steps", [2, 20, 301])
def test_subsampling_keeps_the_first_and_the_last_state(steps: int) -> None:
    states = np.arange(steps * 128, dtype=np.float32).reshape(steps, 128)
    kept = subsample(states)
    assert len(kept) == STORED_STEPS
    assert np.array_equal(kept[[0, -1]], states[[0, -1]])


def test_folds_are_permanent_and_disjoint_per_member() -> None:
    episodes = [EpisodeId(f"e{number}") for number in range(500)]
    fold = np.array([fold_of(0, episode, 5) for episode in episodes])
    # Pinned: with other folds a continued model would train on its held-out episodes.
    assert fold[:12].tolist() == [3, 4, 1, 0, 4, 4, 2, 3, 3, 4, 2, 4]
    assert np.bincount(fold).min() > 60
    for member in range(5):
        training = set(fold[training_rows(fold, member, 5)])
        assert training.isdisjoint({heldout_fold(member, 5), validation_fold(member, 5)})
        assert len(training) == 3


@pytest.mark.parametrize("folds", [2, 3, 5, 10])
def test_heldout_and_validation_folds_differ(folds: int) -> None:
    assert all(heldout_fold(member, folds) != validation_fold(member, folds) for member in range(folds))


def stored(epoch: int, number: int) -> Rating:
    segment = SegmentId(f"e{epoch}-s{number}")
    return Rating(epoch, EpisodeId("e1"), segment, "k", Digest("1" * 64), "d", 0.5, 0.1, 1.0)


def test_the_digest_of_the_data_depends_on_votes_and_not_on_order() -> None:
    one, other = (replace(stored(0, number), score_digest=digest) for number, digest in enumerate("ab"))
    assert data_digest([one, other]) == data_digest([other, one])
    assert data_digest([one, replace(other, score_digest="c")]) != data_digest([one, other])


def test_selection_keeps_all_new_and_a_stable_share_of_old_segments() -> None:
    old = [stored(0, number) for number in range(3_000)]
    new = [stored(1, number) for number in range(600)]
    kept = select_ratings(old + new, 1, 4_000, 0.3)
    assert set(new) <= set(kept)
    assert len(kept) == 600 + 1_400  # 30 % are new
    later = select_ratings([*old, *new, *[stored(2, number) for number in range(600)]], 2, 4_000, 0.3)
    survivors = {r for r in later if r.epoch == 0}
    assert survivors <= {r for r in kept if r.epoch == 0}  # an excluded segment stays excluded


def test_selection_keeps_few_old_segments_within_the_capacity() -> None:
    old = [stored(0, number) for number in range(FREE_OLD_SEGMENTS)]
    assert len(select_ratings([*old, stored(1, 0)], 1, 4_000, 0.5)) == FREE_OLD_SEGMENTS + 1
    assert len(select_ratings([*old, stored(1, 0)], 1, 10, 0.5)) == 10
    assert len(select_ratings([stored(1, number) for number in range(30)], 1, 10, 0.5)) == 10
    assert select_ratings([*old, stored(5, 0)], 3, 4_000, 0.5) == sorted(old, key=lambda r: r.segment)
