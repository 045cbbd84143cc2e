"""The rules judge degraded to the accuracy of a language model: are a model's errors worse than noise?"""

from pathlib import Path
from typing import Final

import numpy as np

from shared.contracts.base import sha256
from shared.contracts.card import Pooling
from shared.contracts.epoch import EpochFinishedRecord, SegmentRef
from shared.contracts.ids import RunId, SegmentId
from shared.contracts.scores import SegmentScores
from shared.store import keys
from shared.store.create import create_if_absent
from shared.store.port import Store
from studies.judges.answers import AnswersError, AnswersFile, has_answers
from studies.judges.bank import Bank
from studies.judges.results import RULES
from studies.judges.sample import judged_sample, noise_for_accuracy, noisy, pairs_accuracy
from studies.labels.labelers import JudgeLabeler
from studies.plan import InvalidStudy

NOISELESS: Final = "noiseless"  # the rubric version that keeps the scores before the noise
TOLERANCE: Final = 0.005  # of the accuracy
ANSWERS: Final = (Path(__file__).parents[2] / "docs" / "results" / "judges-votes" / RULES, Path("runs/bench") / RULES)
"""Where the rules judge's answers about the bank are: as published, or as `zelda judge bench --rules` writes them."""


class NoisyLabeler(JudgeLabeler):
    """Labels with the rules judge, then adds normal noise to the score of each segment, within [0, 1].

    The noise depends on the names of run and segment alone: a repeated trial draws it again, and nothing that happened
    in a segment changes it.
    """

    def __init__(self, store: Store, pooling: Pooling, deviation: float) -> None:
        super().__init__(store, pooling, NOISELESS)
        self._deviation = deviation

    async def label(self, finished: EpochFinishedRecord, ref: SegmentRef) -> None:
        """Judge the segment, and write its score with noise."""
        await super().label(finished, ref)
        raw = await self.store.get(keys.score(finished.run, finished.epoch, ref.segment, NOISELESS))
        scores = SegmentScores.from_bytes(raw)
        if scores.weighted is not None:
            value = scores.weighted + self._deviation * standard_noise(finished.run, ref.segment)
            scores = scores.model_copy(update={"weighted": float(np.clip(value, 0, 1))})
        named = scores.model_copy(update={"rubric": keys.RUBRIC})
        await create_if_absent(self.store, keys.score(finished.run, finished.epoch, ref.segment), named.to_bytes())


def standard_noise(run: RunId, segment: SegmentId) -> float:
    """Return the standard normal number of a segment of a run."""
    seed = int(sha256(f"{run}/{segment}".encode())[:16], 16)
    return float(np.random.default_rng(seed).standard_normal())


def noise_for(accuracy: float, bank: Bank) -> float:
    """Return the deviation of the noise that lowers the rules judge to this accuracy on the bank's half `dev`.

    InvalidStudy if the rules judge has no answers about the bank, or noise cannot reach the accuracy.
    """
    sample = judged_sample(bank, bank.half("dev"), _rules_answers(bank).of("plain"))
    deviation = noise_for_accuracy(sample, accuracy)
    own, reached = pairs_accuracy(sample), pairs_accuracy(noisy(sample, deviation))
    if own is None or reached is None:
        raise InvalidStudy(
            "The rules judge has no answers about the half dev: ask it with `zelda judge bench --rules`."
        )
    if abs(reached - accuracy) > TOLERANCE:
        raise InvalidStudy(
            f"--noisy-accuracy {accuracy:g}: noise brings the rules judge, which orders {own:.2f} of the pairs, to "
            f"{reached:.2f} at the nearest; choose a value between 0.6 and {own:.2f}."
        )
    return deviation


def _rules_answers(bank: Bank) -> AnswersFile:
    folder = next((one for one in ANSWERS if has_answers(one)), None)
    if folder is None:
        raise InvalidStudy(
            "The arm rules-noisy needs the rules judge's answers about the bank: make them with `zelda judge bench "
            "--rules`."
        )
    try:
        return AnswersFile.load(folder, bank)
    except AnswersError as error:
        raise InvalidStudy(f"rules-noisy: {error}.") from error
