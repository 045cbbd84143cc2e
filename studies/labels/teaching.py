"""What ratings, compared pairs and both of them teach a reward model: trained on one half of the bank, measured on the
other by the milestones gained, which no label knows.

Pairs are drawn among the rated segments, as in a run. One rating is one question to the judge, one pair is two.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from pydantic import BaseModel, ConfigDict

from services.judge.domain.pair_selection import Opinions, PairCandidate, most_disputed
from services.judge.domain.vote_merge import unanimous_share
from services.rewardmodel.domain.compared_pairs import PairLabel, to_preferences
from services.rewardmodel.domain.dataset import SegmentDataset, build_dataset
from services.rewardmodel.domain.folds import fold_of
from services.rewardmodel.domain.ratings import Rating
from services.rewardmodel.settings import RewardModelGroup
from services.rewardmodel.training.evaluation import segment_scores, state_scores
from services.rewardmodel.training.pipeline import training_config
from services.rewardmodel.training.train import TrainingTask, train
from services.rewardmodel.training_runner import training_seed
from shared.contracts.base import sha256
from shared.contracts.ids import Digest, EpisodeId, SegmentId
from shared.contracts.learning.reward_learning import LabelSource
from shared.rewardnet import WIDTHS, Floats, RewardWeights
from studies.judges.answers import Answer
from studies.judges.bank import Bank, BankSegment
from studies.judges.orders import Ints, concordance_over, gained_more, share_ordered
from studies.judges.pairs import PairAnswer
from studies.judges.sample import JudgedSample, judged_sample
from studies.labels.bank_features import VIEW, BankFeatures
from studies.stats import Interval, Reals

DIGITS: Final = 4
MIN_PAIRS: Final = 10  # fewer teach nothing


@dataclass(frozen=True, slots=True)
class Teaching:
    """One way of labelling: the kind of labels, how many pairs, and whether the members' disagreement chose them."""

    source: LabelSource
    pairs: int = 0
    disputed: bool = False

    @property
    def name(self) -> str:
        """The title of its row."""
        if self.source == "ratings":
            return "ratings"
        return f"{self.source}, {self.pairs} pairs" + (", disputed" if self.disputed else "")


class TeachingRow(BaseModel):
    """The outcome of one way: `seeds` holds the share of test pairs that differ in gain and are ordered rightly.

    `over_ratings` is the mean difference to ratings with the same seeds; its 95 % interval resamples test episodes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    questions: int
    segments: int
    pairs: int
    accuracy: float
    seeds: list[float]
    over_ratings: Interval | None = None


@dataclass(frozen=True)
class LabelledBank:
    """The rated segments of the half `dev` with the pool of compared pairs among them, and the half `test`."""

    data: SegmentDataset
    episodes: tuple[EpisodeId, ...]
    pool: tuple[PairLabel, ...]
    test_states: Floats
    test_gain: Ints
    test_episode: Ints
    group: RewardModelGroup = field(default_factory=RewardModelGroup)

    def taught(self, way: Teaching, seed: int, opinions: RewardWeights | None = None) -> RewardWeights:
        """Train with these labels; folds, first weights and the drawn pairs follow the seed.

        `opinions` is the model whose disagreement chooses pairs, where the way asks for one.
        """
        group = self.group
        chosen = self._chosen(way, seed, opinions)
        fold = np.array([fold_of(seed, episode, group.members) for episode in self.episodes], np.int64)
        data = replace(self.data, fold=fold, compared=to_preferences(chosen))
        task = TrainingTask(data, VIEW, seed=training_seed(seed, 0))
        return train(task, training_config(group, way.source), lambda: False).weights

    def scores(self, model: RewardWeights) -> Reals:
        """The members' mean score of each test segment."""
        score: Reals = segment_scores(state_scores(model, self.test_states), "gain").mean(axis=0).astype(np.float64)
        return score

    def accuracy(self, score: Reals) -> float:
        """Share of the pairs of test segments that differ in gain and are ordered rightly by this score."""
        share = share_ordered(score, gained_more(self.test_gain))
        assert share is not None  # the test half has segments with and without gain
        return share

    def over(self, scores: Reals, others: Reals) -> Interval:
        """How much more of these pairs `scores` (seeds, n) order rightly than `others` of the same seeds."""
        found = concordance_over(scores, others, gained_more(self.test_gain), self.test_episode)
        assert found is not None
        return found.rounded(DIGITS)

    def _chosen(self, way: Teaching, seed: int, opinions: RewardWeights | None) -> list[PairLabel]:
        order = [self.pool[k] for k in np.random.default_rng(seed).permutation(len(self.pool))]
        if way.disputed and opinions is not None:
            known = {(str(one.first), str(one.second)): one for one in order}
            candidates = [PairCandidate(*names) for names in known]
            ranked = most_disputed(candidates, self._opinions(opinions))
            order = [known[one.first, one.second] for one in ranked]
        return order[: way.pairs]

    def _opinions(self, model: RewardWeights) -> Opinions:
        scores = segment_scores(state_scores(model, self.data.states), "gain")
        return Opinions({str(row): scores[:, row].tolist() for row in range(len(self.data))}, model.temperature)


def label_bank(
    bank: Bank,
    answers: Mapping[str, Answer],
    compared: Sequence[PairAnswer],
    features: BankFeatures,
    tested: Sequence[BankSegment],
) -> LabelledBank:
    """Join the answers about the half `dev` with the features of their segments; `tested` are of the half `test`."""
    sample = judged_sample(bank, bank.half("dev"), answers)
    by_name = {one.name: one for one in bank.half("dev")}
    segments = [by_name[name] for name in sample.names]
    ratings = _ratings(sample)
    rows = {one.name: row for row, one in enumerate(segments)}
    pool = tuple(
        PairLabel(rows[one.first], rows[one.second], one.label)
        for one in compared
        if one.label is not None and one.first in rows and one.second in rows
    )
    return LabelledBank(
        data=build_dataset(ratings, features.of(segments), [0] * len(ratings), WIDTHS[VIEW]),
        episodes=tuple(rating.episode for rating in ratings),
        pool=pool,
        test_states=features.states(tested),
        test_gain=np.array([one.gain for one in tested], np.int64),
        test_episode=np.array([one.episode for one in tested], np.int64),
    )


def ways(pool: int) -> list[Teaching]:
    """The ways that a pool of compared pairs allows to measure; disputed ones choose half of the pool."""
    half = pool // 2
    if half < MIN_PAIRS:
        return [Teaching("ratings")]
    return [
        Teaching("ratings"),
        Teaching("pairs", half),
        Teaching("pairs", pool),
        Teaching("both", half),
        Teaching("both", half, disputed=True),
        Teaching("both", pool),
    ]


def measure(bank: LabelledBank, seeds: Sequence[int], report: Callable[[str], None]) -> dict[str, TeachingRow]:
    """Train each way with each seed. `report` receives a line after each training."""
    found: dict[str, list[Reals]] = {}
    chosen = ways(len(bank.pool))
    for seed in seeds:
        rated: RewardWeights | None = None
        for way in chosen:
            model = bank.taught(way, seed, rated)
            rated = model if way.source == "ratings" else rated
            score = bank.scores(model)
            found.setdefault(way.name, []).append(score)
            report(f"seed {seed}, {way.name}: {bank.accuracy(score):.3f}")
    base = np.array(found["ratings"])
    return {way.name: _row(way, bank, np.array(found[way.name]), base) for way in chosen}


def _row(way: Teaching, bank: LabelledBank, scores: Reals, base: Reals) -> TeachingRow:
    rated = 0 if way.source == "pairs" else len(bank.data)
    accuracy = np.array([bank.accuracy(score) for score in scores])
    difference = None if way.source == "ratings" else bank.over(scores, base)
    return TeachingRow(
        questions=rated + 2 * way.pairs,
        segments=rated,
        pairs=way.pairs,
        accuracy=round(float(accuracy.mean()), DIGITS),
        seeds=[round(float(one), DIGITS) for one in accuracy],
        over_ratings=difference,
    )


def _ratings(sample: JudgedSample) -> list[Rating]:
    """The scores as the reward model service reads them."""
    nothing = Digest(sha256(b""))
    return [
        Rating(
            epoch=0,
            episode=EpisodeId(f"e{episode}"),
            segment=SegmentId(f"e{episode}-{row}"),
            segment_key="",
            segment_digest=nothing,
            score_digest=nothing,
            value=float(np.clip(sample.score[row], 0, 1)),
            standard_error=float(sample.error[row]),
            agreement=unanimous_share(sample.answers[row].results) or 0.0,
        )
        for row, episode in enumerate(sample.episode.tolist())
    ]
