"""What labels teach: models are trained on rated and compared segments of a bank and measured on its other half."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from services.rewardmodel.settings import RewardModelGroup
from shared.contracts.base import sha256
from studies.judges.bank import Bank, Half
from studies.judges.pairs import PairAnswer, draw_pairs
from studies.labels.bank_features import BankFeatures
from studies.labels.teaching import LabelledBank, Teaching, label_bank, measure, ways
from tests.unit.studies.small_bank import answer, imagined_bank

QUICK = RewardModelGroup(steps=40, shuffles=1)
WON, LOST, EQUAL = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0)


def bank(half: Half, gains: list[int]) -> Bank:
    """A bank whose segments differ in their digests."""
    made = imagined_bank(gains, per_episode=2, half=half)
    named = [replace(one, digest=sha256(f"{half}{one.name}".encode())) for one in made.segments]
    return Bank(made.episodes, tuple(named))


def features(*banks: Bank) -> BankFeatures:
    """One counter rises by what a segment gained."""
    states = {}
    for one in (segment for each in banks for segment in each.segments):
        rising = np.zeros((32, 20), np.float32)
        rising[:, 0] = np.linspace(0, one.gain, 32)
        states[one.digest] = rising
    return BankFeatures(Path("features.npz"), states)


def compared(known: Bank) -> list[PairAnswer]:
    """All pairs, compared by a judge that knows the gains."""
    found = []
    for one, other in combinations(known.segments, 2):
        forward = EQUAL if one.gain == other.gain else WON if one.gain > other.gain else LOST
        backward = (forward[2], forward[1], forward[0])
        found.append(PairAnswer(first=one.name, second=other.name, forward=forward, backward=backward, seconds=1))
    return found


def test_a_segment_that_ended_early_began_at_its_place_in_the_episode() -> None:
    known = bank("dev", [0, 1])
    cut = [replace(one, index=2, steps=120) for one in known.segments]
    assert [(one.first_step, one.steps) for one in features(known).of(cut)] == [(600, 120)] * 2


@pytest.fixture(scope="module")
def labelled() -> LabelledBank:
    dev, test = bank("dev", [0, 1, 2, 0, 3, 1, 0, 2] * 3), bank("test", [0, 2, 1, 0, 3])
    answers = {one.name: answer(one.name, [min(5, one.gain)] * 3) for one in dev.segments}
    made = label_bank(dev, answers, compared(dev), features(dev, test), test.segments)
    return replace(made, group=QUICK)


def test_each_way_is_measured_against_ratings_with_the_same_seeds(labelled: LabelledBank) -> None:
    few = replace(labelled, pool=labelled.pool[::6][:40])
    lines: list[str] = []
    rows = measure(few, range(2), lines.append)
    pool, half = 40, 20
    assert list(rows) == [
        "ratings",
        "pairs, 20 pairs",
        "pairs, 40 pairs",
        "both, 20 pairs",
        "both, 20 pairs, disputed",
        "both, 40 pairs",
    ]
    assert len(lines) == 12
    wanted = [24, 2 * half, 2 * pool, 24 + 2 * half, 24 + 2 * half, 24 + 2 * pool]
    assert [row.questions for row in rows.values()] == wanted
    assert rows["ratings"].over_ratings is None
    for row in rows.values():
        assert len(row.seeds) == 2
    assert rows["ratings"].accuracy > 0.9  # one counter says it all
    assert rows[f"pairs, {pool} pairs"].accuracy > 0.9
    over = rows[f"pairs, {pool} pairs"].over_ratings
    assert over is not None
    difference = rows[f"pairs, {pool} pairs"].accuracy - rows["ratings"].accuracy
    assert over[0] == pytest.approx(difference, abs=2e-4)
    assert over[1] <= over[0] <= over[2]


def test_a_small_pool_leaves_ratings_alone() -> None:
    assert ways(19) == [Teaching("ratings")]
    assert len(ways(20)) == 6


def test_pairs_with_unrated_segments_are_no_labels() -> None:
    dev = bank("dev", [0, 1, 2, 3])
    answers = {one.name: answer(one.name, [1, 1, 1]) for one in dev.segments[:3]}
    made = label_bank(dev, answers, compared(dev), features(dev), dev.segments)
    assert len(made.pool) == 3
    assert len(made.data) == 3
    unlabelled = [one.model_copy(update={"backward": None}) for one in compared(dev)]
    assert label_bank(dev, answers, unlabelled, features(dev), dev.segments).pool == ()


def test_pairs_for_labels_are_drawn_without_the_truth() -> None:
    segments = bank("dev", [0] * 6).half("dev")
    assert draw_pairs(segments, 5) == []
    drawn = draw_pairs(segments, 5, any_gain=True)
    assert len(drawn) == 5
    assert draw_pairs(segments, 3, any_gain=True) == drawn[:3]
