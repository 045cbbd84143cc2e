"""The benchmark for judges: asked once, compared with the truth, calibrated on the other half."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from services.judge.config import rules_only
from shared.contracts.scores import Usage
from studies.judges.answers import AnswersError, AnswersFile, judges_digest, packed, plain
from studies.judges.bank import Bank
from studies.judges.calibration import SpreadCalibration, equal_width_calibration_error, fit
from studies.judges.orders import (
    concordance,
    concordance_over,
    flips,
    gained_any,
    gained_more,
    gained_several,
    led_to_more,
)
from studies.judges.results import JudgeResults, baseline_rows, judge_row
from studies.judges.sample import judged_sample, noise_for_accuracy, noisy, pairs_accuracy
from studies.stats import Estimate
from tests.unit.studies.small_bank import answer, imagined_bank

RNG = np.random.default_rng(1)
GAINS = [int(gain) for gain in RNG.integers(0, 4, 80)]


def kept_answers(folder: Path, votes: list[list[int]]) -> AnswersFile:
    """Answers about the segments of an imagined bank, in their order."""
    kept = AnswersFile.open(folder, rules_only(), imagined_bank(GAINS))
    for place, one in enumerate(votes):
        kept.add(answer(f"b{place:04d}", one))
    return kept


def test_scores_in_the_order_of_gains_are_all_right_and_reversed_all_wrong() -> None:
    gain, episode = np.array(GAINS), np.arange(len(GAINS)) // 2
    better = gained_more(gain)
    assert concordance(gain.astype(float), better, episode) == Estimate(1.0, 1.0, 1.0)
    assert concordance(-gain.astype(float), better, episode) == Estimate(0.0, 0.0, 0.0)
    assert concordance(np.zeros(len(gain)), better, episode) == Estimate(0.5, 0.5, 0.5)
    assert concordance(gain.astype(float), np.zeros_like(better), episode) is None


def test_intervals_are_wider_when_segments_share_episodes() -> None:
    gain = np.repeat(GAINS[:40], 2)
    score = gain + np.repeat(np.random.default_rng(3).normal(0, 2, 40), 2)
    alone = concordance(score, gained_more(gain), np.arange(80))
    together = concordance(score, gained_more(gain), np.arange(80) // 2)
    assert alone is not None
    assert together is not None
    assert together.high - together.low > 1.2 * (alone.high - alone.low)


def test_pairs_within_ten_episodes_are_ten_independent_pairs() -> None:
    better = np.zeros((20, 20), np.bool_)
    first = np.arange(0, 20, 2)
    better[first, first + 1] = True
    score = np.tile([0.9, 0.1], 10) * np.repeat([1.0, -1.0], 10)  # right for five pairs, wrong for five
    assert concordance(score, better, np.arange(20) // 2) == Estimate(0.5, 0.2, 0.8), "that of 10 draws"


def test_the_kinds_of_pairs_are_told_apart() -> None:
    gain, following = np.array([0, 0, 2, 1]), np.array([3.0, np.nan, 0.0, 1.0])
    assert gained_more(gain).sum() == 5
    assert gained_any(gain).sum() == 4
    assert np.argwhere(gained_several(gain)).tolist() == [[2, 3]]
    assert led_to_more(gain, following).sum() == 0  # the other segment without gain has no known future
    assert led_to_more(gain, np.array([3.0, 1.0, 0.0, 1.0])).tolist()[0] == [False, True, False, False]


def test_flips_count_pairs_ordered_oppositely() -> None:
    gain = np.array([2, 1, 0])
    assert flips(np.array([3.0, 2.0, 1.0]), np.array([3.0, 1.0, 2.0]), gained_more(gain)) == pytest.approx(1 / 3)


def test_scores_that_differ_by_rounding_alone_order_no_pair() -> None:
    gain, episode = np.array([1, 0]), np.arange(2)
    equal, better = np.array([0.1 + 0.2, 0.3]), gained_more(gain)  # weighted sums of the same votes
    assert equal[0] > equal[1]
    assert concordance(equal, better, episode) == Estimate(0.5, 0.5, 0.5)
    assert flips(equal, equal[::-1], better) == 0.0
    probability = SpreadCalibration().probability(equal, np.zeros(2))
    assert equal_width_calibration_error(probability, better) == pytest.approx(0.0, abs=1e-9)


def test_a_judge_that_is_too_sure_is_calibrated_on_the_other_half() -> None:
    def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        gain = rng.integers(0, 4, 200)
        error = rng.uniform(0.02, 0.06, 200)  # its own; the true one is five times larger
        return gain / 12 + 5 * error * rng.normal(size=200), error, gained_more(gain)

    score, error, better = drawn(1)
    found = fit(score, error, better)
    fresh, own, truth = drawn(2)
    before = equal_width_calibration_error(SpreadCalibration(floor=0.001).probability(fresh, own), truth)
    after = equal_width_calibration_error(found.probability(fresh, own), truth)
    assert before is not None
    assert after is not None
    assert before > 0.1
    assert after < 0.06
    assert found.scale > 4, "the true error is five times the stated one"
    with pytest.raises(ValueError, match="no pair of segments differs in gain"):
        fit(score, error, np.zeros_like(better))


def test_a_judge_that_is_sure_and_wrong_has_the_largest_error() -> None:
    better = gained_more(np.array([1, 0]))
    assert equal_width_calibration_error(np.array([[0.5, 0.0], [1.0, 0.5]]), better) == 1.0
    assert equal_width_calibration_error(np.array([[0.5, 1.0], [0.0, 0.5]]), better) == 0.0


def test_noise_lowers_the_accuracy_to_the_one_wanted(tmp_path: Path) -> None:
    bank = imagined_bank(GAINS)
    kept = kept_answers(tmp_path, [[min(5, gain + 1)] for gain in GAINS])
    sample = judged_sample(bank, bank.half("dev"), kept.of("plain"))
    assert pairs_accuracy(sample) == 1.0
    assert pairs_accuracy(noisy(sample, noise_for_accuracy(sample, 0.8))) == pytest.approx(0.8, abs=0.01)


def test_a_row_has_the_figures_of_the_bar(tmp_path: Path) -> None:
    bank = imagined_bank(GAINS)
    kept = kept_answers(tmp_path / "one", [[gain, gain + 1, gain + 1] for gain in GAINS])
    row = judge_row(bank, "dev", kept)
    assert row.segments == 80
    assert row.episodes == 40
    assert row.pairs_accuracy == (1.0, 1.0, 1.0)
    assert row.alpha is not None
    assert row.alpha > 0.5
    assert row.seconds_per_segment == 2.0
    assert row.ece is None  # the other half has no answers to calibrate on
    assert row.ece_raw is not None
    assert row.over_length is None, "no rules, so no length of their texts"
    assert baseline_rows(bank, "dev", kept, 0.8).keys() == {"length-only"}


def test_a_row_counts_abstentions_repetitions_variants_and_tokens(tmp_path: Path) -> None:
    bank = imagined_bank(GAINS)
    kept = kept_answers(tmp_path / "one", [[gain] for gain in GAINS])
    kept.add(answer("b0079", [0]).model_copy(update={"weighted": None}))
    for place, gain in enumerate(GAINS[:20]):
        kept.add(answer(f"b{place:04d}", [5 - gain]).model_copy(update={"variant": "shuffled"}))
        kept.add(answer(f"b{place:04d}", [2]).model_copy(update={"variant": "planted"}))
    usage = Usage(prompt_tokens=79, cached_tokens=158, output_tokens=237)
    paid = answer("b0000", [GAINS[0]])
    kept.add(paid.model_copy(update={"results": [paid.results[0].model_copy(update={"usage": usage})]}))
    lengths = kept_answers(tmp_path / "two", [[gain] for gain in GAINS[:30]])
    row = judge_row(bank, "dev", kept, lengths)
    assert (row.segments, row.abstained) == (79, 1)
    assert row.flip_rate == 1.0
    assert row.retest == pytest.approx(-1.0)
    assert row.ablations == {"planted": (0.5, 0.5, 0.5), "plain of planted": (1.0, 1.0, 1.0)}
    assert row.tokens_per_1000 == {"prompt": 1_000, "cached": 2_000, "output": 3_000}
    assert row.over_length == {"pairs_accuracy": (0.0, 0.0, 0.0), "auc": (0.0, 0.0, 0.0)}, "a longer text gained more"
    assert baseline_rows(bank, "dev", lengths, 0.8)["length-only"].pairs_accuracy == (1.0, 1.0, 1.0)
    sample = judged_sample(bank, bank.half("dev"), kept.of("plain"))
    assert np.isnan(sample.following).all(), "no segment of this bank has a known future"


def test_a_calibration_is_fitted_on_the_other_half_alone(tmp_path: Path) -> None:
    bank = imagined_bank(GAINS)
    other = tuple(replace(one, half="test") if place >= 20 else one for place, one in enumerate(bank.episodes))
    halved = replace(bank, episodes=other)
    kept = kept_answers(tmp_path, [[gain] for gain in GAINS])
    kept.add(answer("b0000", [5 - GAINS[0]]))  # the half dev has an error, the half test has none
    own = judged_sample(halved, halved.half("dev"), kept.of("plain"))
    fitted = fit(own.score, own.error, gained_more(own.gain))
    row = judge_row(halved, "test", kept)
    assert row.calibration == {"scale": round(fitted.scale, 4), "floor": round(fitted.floor, 4)}
    assert judge_row(halved, "dev", kept).calibration != row.calibration
    few = {key: one for key, one in kept.answers.items() if key[0] not in {f"b{place:04d}" for place in range(21)}}
    kept.answers = few  # 19 of the half dev
    assert judge_row(halved, "test", kept).calibration is None


def test_judges_are_what_they_read_and_not_where_they_are_served() -> None:
    (judge,) = rules_only().judges
    changes = ({"route": "elsewhere"}, {"examples": True}, {"temperature": 0.1}, {"frames": 2})
    made = [rules_only().model_copy(update={"judges": (judge.model_copy(update=change),)}) for change in changes]
    same, *others = [judges_digest(one) for one in made]
    assert same == judges_digest(rules_only())
    assert len({same, *others}) == 4


def test_packed_answers_are_equal_bytes_and_older_than_the_plain_file(tmp_path: Path) -> None:
    kept = kept_answers(tmp_path, [[1], [2]])
    assert kept.pack().read_bytes()[4:8] == bytes(4), "gzip's time stamp"
    kept.add(answer("b0002", [3]))
    assert AnswersFile.load(tmp_path, imagined_bank(GAINS)).answers == kept.answers


def test_a_judge_is_compared_with_the_length_on_the_same_pairs(tmp_path: Path) -> None:
    bank = imagined_bank(GAINS)
    perfect = kept_answers(tmp_path / "one", [[gain] for gain in GAINS])
    of_one_length = kept_answers(tmp_path / "two", [[0] for _ in GAINS])  # so it orders nothing
    row = judge_row(bank, "dev", perfect, of_one_length)
    assert row.over_length == {"pairs_accuracy": (0.5, 0.5, 0.5), "auc": (0.5, 0.5, 0.5)}
    gain, episode = np.array([0, 1, 2]), np.array([0, 1, 2])
    same = concordance_over(np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0]), gained_more(gain), episode)
    assert same == Estimate(0.0, 0.0, 0.0)
    seeds, base = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]]), np.full((2, 3), 0.5)
    both = concordance_over(seeds, base, gained_more(gain), episode)
    assert both is not None
    assert both.value == 0.0, "one seed orders all pairs rightly and the other one none: the mean over seeds counts"


def test_results_keep_the_rows_of_other_judges(tmp_path: Path) -> None:
    bank = imagined_bank(GAINS)
    row = judge_row(bank, "dev", kept_answers(tmp_path / "one", [[gain] for gain in GAINS]))
    results = JudgeResults.model_validate(
        {"command": "c", "date": "2026-11-23", "commit": "x", "half": "dev", "rows": {"one": row}}
    )
    results.save(tmp_path / "judges.json")
    assert JudgeResults.load(tmp_path / "judges.json") == results
    assert json.loads((tmp_path / "judges.json").read_text())["rows"]["one"]["pairs_accuracy"] == [1.0, 1.0, 1.0]
    (tmp_path / "judges.json").write_text("{}")
    with pytest.raises(AnswersError, match="no results file of judges"):
        JudgeResults.load(tmp_path / "judges.json")


def test_answers_survive_a_crash_and_compression(tmp_path: Path) -> None:
    kept, bank = kept_answers(tmp_path, [[1], [2], [3]]), imagined_bank(GAINS)
    with plain(tmp_path).open("a") as out:
        out.write('{"segment": "b0003", "wei')
    assert AnswersFile.load(tmp_path, bank).answers == kept.answers
    kept = AnswersFile.open(tmp_path, rules_only(), bank)
    kept.pack()
    plain(tmp_path).unlink()
    assert AnswersFile.open(tmp_path, rules_only(), bank).answers == kept.answers
    assert plain(tmp_path).exists()
    assert packed(tmp_path).stat().st_size < plain(tmp_path).stat().st_size


def test_answers_of_other_judges_are_refused(tmp_path: Path) -> None:
    kept_answers(tmp_path, [[1]])
    bank = imagined_bank(GAINS)
    judge = rules_only().judges[0]
    other = rules_only().model_copy(update={"judges": (judge.model_copy(update={"dimensions": ("progress",)}),)})
    with pytest.raises(AnswersError, match="answers of other judges or of another rubric"):
        AnswersFile.open(tmp_path, other, bank)
    plain(tmp_path).write_text('{"no": "judges"}\n')
    with pytest.raises(AnswersError, match="does not begin with the judges"):
        AnswersFile.load(tmp_path, bank)
    with pytest.raises(AnswersError, match="holds no answers"):
        AnswersFile.load(tmp_path / "none", bank)


def test_answers_about_another_bank_with_equal_names_are_refused(tmp_path: Path) -> None:
    kept = kept_answers(tmp_path, [[1]])
    bank = imagined_bank(GAINS)
    other = replace(bank, segments=tuple(replace(one, digest="1" * 64) for one in bank.segments))
    refused = "answers about another bank: ask about this bank in another folder"
    with pytest.raises(AnswersError, match=refused):
        AnswersFile.load(tmp_path, other)
    with pytest.raises(AnswersError, match=refused):
        AnswersFile.open(tmp_path, rules_only(), other)
    assert AnswersFile.load(tmp_path, bank).answers == kept.answers


def test_answers_that_state_no_bank_are_about_the_published_one(tmp_path: Path) -> None:
    AnswersFile.open(tmp_path, rules_only(), Bank.load()).add(answer("b0001", [1]))
    head, rest = plain(tmp_path).read_text().split("\n", 1)
    stated = json.loads(head)
    assert stated.pop("bank") == Bank.load().digest
    plain(tmp_path).write_text(f"{json.dumps(stated)}\n{rest}")
    assert AnswersFile.load(tmp_path, Bank.load()).answers.keys() == {("b0001", "plain")}
    with pytest.raises(AnswersError, match="answers about another bank"):
        AnswersFile.load(tmp_path, imagined_bank(GAINS))


def test_the_published_figures_follow_from_the_published_answers() -> None:
    results = Path(__file__).parents[3] / "docs" / "results"
    bank = Bank.load()
    answers = AnswersFile.load(results / "judges-votes" / "rules", bank).of("plain")
    published = JudgeResults.load(results / "judges.json").rows["rules"]
    sample = judged_sample(bank, bank.half("test"), answers)
    accuracy = concordance(sample.score, gained_more(sample.gain), sample.episode)
    assert accuracy is not None
    assert published.segments == len(sample) == 500
    assert published.pairs_accuracy == pytest.approx((accuracy.value, accuracy.low, accuracy.high), abs=1e-4)
