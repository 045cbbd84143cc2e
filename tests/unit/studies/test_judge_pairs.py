"""Pairs of the bank's segments: drawn fairly, asked once, and measured in both orders."""

from pathlib import Path

import pytest

from studies.judges.answers import AnswersError
from studies.judges.bank import BankSegment
from studies.judges.pairs import PairAnswer, PairAnswers, draw_pairs, pair_row
from tests.unit.studies.small_bank import imagined_bank

GAINS = [0, 0, 1, 1, 2, 3, 0, 2, 1, 0]
Shares = tuple[float, float, float]


def segments() -> list[BankSegment]:
    return imagined_bank(GAINS).half("dev")


def answered(pair: tuple[BankSegment, BankSegment], forward: Shares | None, backward: Shares | None) -> PairAnswer:
    return PairAnswer(first=pair[0].name, second=pair[1].name, forward=forward, backward=backward, seconds=3.0)


def right(pair: tuple[BankSegment, BankSegment]) -> PairAnswer:
    """The answer of a judge that knows the truth, and is sure by nine to one."""
    better = pair[0].gain > pair[1].gain
    won, lost = (0.9, 0.0, 0.1), (0.1, 0.0, 0.9)
    return answered(pair, *((won, lost) if better else (lost, won)))


def test_pairs_differ_in_gain_and_a_few_are_the_first_of_many() -> None:
    many = draw_pairs(segments(), 20)
    assert all(one.gain != other.gain for one, other in many)
    assert len({frozenset((one.name, other.name)) for one, other in many}) == 20
    assert draw_pairs(segments(), 5) == many[:5]
    assert len(draw_pairs(segments(), 1_000)) == 35  # all that differ in gain


@pytest.mark.parametrize("gains", [GAINS, [0, 0, 0, 0, 1, 0, 2], [3, 1, 2, 0], [0, 0, 1]])
def test_until_all_segments_are_drawn_each_pair_has_a_new_one(gains: list[int]) -> None:
    bank = imagined_bank(gains).half("dev")
    names = {segment.name for segment in bank}
    drawn: set[str] = set()
    for pair in draw_pairs(bank, 1_000):
        new = {segment.name for segment in pair} - drawn
        assert new or drawn == names
        drawn |= new
    assert drawn == names


def test_a_pair_with_an_answer_is_not_asked_the_other_way_round(tmp_path: Path) -> None:
    one, other, third = segments()[:3]
    kept = PairAnswers.open(tmp_path)
    kept.add(right((one, other)))
    assert not kept.lacks(one, other)
    assert not kept.lacks(other, one)
    assert kept.lacks(one, third)
    assert kept.lacks(third, other)


def test_a_judge_that_knows_is_right_and_does_not_flip() -> None:
    row = pair_row([right(pair) for pair in draw_pairs(segments(), 20)], segments())
    assert row.pairs == 20
    assert row.pairs_accuracy == (1.0, 1.0, 1.0)
    assert row.flip_rate == 0.0
    assert row.position_preference == pytest.approx(0.0)
    assert row.ece_raw == pytest.approx(0.1)


def test_a_judge_that_prefers_a_position_is_a_coin() -> None:
    pairs = draw_pairs(segments(), 20)
    row = pair_row([answered(pair, (0.8, 0.0, 0.2), (0.8, 0.0, 0.2)) for pair in pairs], segments())
    assert row.pairs_accuracy == (0.5, 0.5, 0.5)
    assert row.flip_rate == 1.0
    assert row.position_preference == pytest.approx(0.3)


def test_ties_flip_nothing_and_pairs_of_equal_gain_do_not_count() -> None:
    known = segments()
    equal_gain, *rest = [(known[0], known[1]), (known[0], known[2]), (known[0], known[3])]
    tie = (0.0, 1.0, 0.0)
    row = pair_row([answered(pair, tie, tie) for pair in (equal_gain, *rest)], known)
    assert (row.pairs, row.abstained, row.segments) == (2, 0, 3)
    assert row.flip_rate == 0.0
    assert row.pairs_accuracy == (0.5, 0.5, 0.5)
    assert row.seconds_per_segment == 2.0, "six seconds for two pairs of three segments"


def test_a_pair_without_both_replies_has_no_label(tmp_path: Path) -> None:
    pair = draw_pairs(segments(), 1)[0]
    row = pair_row([answered(pair, (1.0, 0.0, 0.0), None)], segments())
    assert (row.pairs, row.abstained, row.pairs_accuracy) == (0, 1, None)


def test_pairs_are_kept_and_not_asked_again(tmp_path: Path) -> None:
    pairs = draw_pairs(segments(), 2)
    kept = PairAnswers.open(tmp_path)
    kept.add(right(pairs[0]))
    again = PairAnswers.open(tmp_path)
    assert again.answers == kept.answers
    assert [again.lacks(*pair) for pair in pairs] == [False, True]
    with kept.file.open("a") as out:
        out.write('{"first": "b0')  # a crash cut the line off
    again = PairAnswers.open(tmp_path)
    again.add(right(pairs[1]))
    assert PairAnswers.open(tmp_path).answers == [right(pair) for pair in pairs]
    kept.file.write_text('{"first": "b0000"}\n')
    with pytest.raises(AnswersError, match=r"pairs.jsonl is damaged: second: Field required"):
        PairAnswers.open(tmp_path)
