"""A run as metrics: its newest finished epoch, and who helped its policy in the present one.

The first are training, agreement of the judges and quality of the reward model, from the epoch's row; the second comes
from the run's progress. Only the leader sets them, one series for each active run; `keep_only` removes the series of
runs that ended five minutes ago, so that their number stays bounded. No decision reads them.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from prometheus_client import Gauge

from shared.contracts.card import RewardModelCard
from shared.contracts.driver import BREAKER_NUMBERS, COUNTED_STATUSES, ENDINGS, SUGGESTION_OUTCOMES, Assistance
from shared.contracts.ids import RunId
from shared.contracts.progress import EpochRow
from shared.telemetry import metrics

RUN: Final = "run"
SHOWN_AFTER_END: Final = timedelta(minutes=5)
"""Several scrapes: a run's last epoch is set in the pass in which the run ends."""
NUMBER: Final = metrics.gauge("epoch_number", "number of the newest finished epoch, from 0", [RUN])
TRAINING: Final = metrics.gauge("epoch_training_value", "figures of its episodes, e.g. return_mean", [RUN, "figure"])
TERM: Final = metrics.gauge("epoch_reward_term_value", "mean return of an episode by reward term", [RUN, "term"])
LEARNER: Final = metrics.gauge("epoch_learner_value", "figures of its last batch, e.g. kl, entropy", [RUN, "figure"])
EVALUATION: Final = metrics.gauge("epoch_evaluation_value", "figures of exploration-free episodes", [RUN, "figure"])
SEGMENTS: Final = metrics.gauge("epoch_segments", "its segments by status, and those dropped", [RUN, "status"])
SCORE: Final = metrics.gauge("epoch_score_ratio", "mean score of its judged segments", [RUN])
AGREEMENT: Final = metrics.gauge("epoch_agreement_ratio", "mean share of unanimous dimensions", [RUN])
ACCURACY: Final = metrics.gauge("epoch_reward_model_accuracy_ratio", "held-out accuracy of its new model", [RUN])
PASSED: Final = metrics.gauge("epoch_reward_model_passed_state", "1 if that model passed its gates", [RUN])
AGE: Final = metrics.gauge(
    "epoch_reward_model_age_epochs", "judged epochs since the one that trained its reward model", [RUN]
)
ALARM: Final = metrics.gauge("epoch_alarm_state", "1 if reward models were withdrawn after it", [RUN])

ECE: Final = metrics.gauge("reward_model_ece_ratio", "expected calibration error of the newest model, held out", [RUN])
SPREAD: Final = metrics.gauge("reward_model_spread_value", "its standard deviation over the policy's states", [RUN])
RANK: Final = metrics.gauge("reward_model_rank_correlation", "its Spearman correlation with the judges", [RUN])
BASELINE: Final = metrics.gauge("reward_model_baseline_ratio", "held-out accuracy of a baseline", [RUN, "baseline"])

TAKEOVERS: Final = metrics.gauge(
    "epoch_takeovers", "takeovers of a planner in the present epoch by need and ending", [RUN, "need", "ending"]
)
SUGGESTIONS: Final = metrics.gauge(
    "epoch_suggestions", "suggestions of models in the present epoch by outcome", [RUN, "outcome"]
)
CALLS: Final = metrics.gauge(
    "epoch_planner_calls", "questions to models in the present epoch by mode and outcome", [RUN, "mode", "outcome"]
)
ANSWER_SECONDS: Final = metrics.gauge("epoch_planner_answer_seconds", "mean time of their answers", [RUN, "mode"])
BREAKER: Final = metrics.gauge("epoch_planner_breaker_state", "0 closed, 1 half-open, 2 open", [RUN, "mode"])

_GROUPS: Final = (("reward/", TERM), ("learner/", LEARNER))
_LABELLED: Final = (TRAINING, TERM, LEARNER, EVALUATION)
_PLAIN: Final = (NUMBER, SCORE, AGREEMENT, ACCURACY, PASSED, AGE, ALARM, ECE, SPREAD, RANK)
_ASSISTANCE: Final = (TAKEOVERS, SUGGESTIONS, CALLS, ANSWER_SECONDS, BREAKER)
_shown: dict[RunId, datetime | None] = {}
"""The runs with series, and when the first pass found each of them ended."""


def set_epoch(run: RunId, row: EpochRow, judge_interval: int = 1) -> None:
    """Set every gauge of a run's epoch from its row. An unknown value is NaN."""
    _shown[run] = None
    NUMBER.labels(run).set(row.epoch)
    for family in _LABELLED:  # drop labels that only an earlier epoch had
        family.remove_by_labels({RUN: run})
    for name, value in row.metrics.items():
        gauge, label = TRAINING, name
        for prefix, group in _GROUPS:
            if name.startswith(prefix):
                gauge, label = group, name.removeprefix(prefix)
        gauge.labels(run, label).set(value)
    for name, value in (row.evaluation or {}).items():
        EVALUATION.labels(run, name).set(value)
    for status in ("judged", "abstained", "dead", "waiting", "dropped"):
        SEGMENTS.labels(run, status).set(getattr(row, f"segments_{status}"))
    _set(SCORE.labels(run), row.score_mean)
    _set(AGREEMENT.labels(run), row.agreement)
    _set(ACCURACY.labels(run), row.reward_model_accuracy)
    _set(PASSED.labels(run), row.reward_model_passed)
    model = row.reward_model_epoch
    _set(AGE.labels(run), None if model is None else row.epoch // judge_interval - model // judge_interval)
    ALARM.labels(run).set(row.alarm is not None)


def set_card(card: RewardModelCard) -> None:
    """Set the gauges of the newest reward model of its run from its card."""
    _shown[card.run] = None
    _set(ECE.labels(card.run), card.calibration.ece if card.calibration else None)
    _set(SPREAD.labels(card.run), card.spread)
    _set(RANK.labels(card.run), card.rank_correlation)
    BASELINE.remove_by_labels({RUN: card.run})
    for name, accuracy in card.baselines.items():
        _set(BASELINE.labels(card.run, name), accuracy)


def set_assistance(run: RunId, assistance: Assistance) -> None:
    """Set the gauges of who helped the policy in the present epoch. An outcome that did not occur is 0."""
    _shown[run] = None
    for need, endings in assistance.takeovers.items():
        for ending in ENDINGS:
            TAKEOVERS.labels(run, need, ending).set(endings.get(ending, 0))
    if assistance.suggestions:
        for outcome in SUGGESTION_OUTCOMES:
            SUGGESTIONS.labels(run, outcome).set(assistance.suggestions.get(outcome, 0))
    for mode, calls in assistance.calls.items():
        for status in COUNTED_STATUSES:
            CALLS.labels(run, mode, status).set(calls.outcomes.get(status, 0))
        _set(ANSWER_SECONDS.labels(run, mode), calls.answer_seconds_mean)
        BREAKER.labels(run, mode).set(BREAKER_NUMBERS[calls.breaker])


def keep_only(runs: Collection[RunId], now: datetime) -> None:
    """Remove the series of runs that are not in `runs` for SHOWN_AFTER_END: they ended, or another coordinator led."""
    for run, ended in list(_shown.items()):
        if run in runs:
            _shown[run] = None
        elif ended is None:
            _shown[run] = now
        elif now - ended >= SHOWN_AFTER_END:
            _remove(run)


def _remove(run: RunId) -> None:
    for family in (*_LABELLED, *_PLAIN, *_ASSISTANCE, SEGMENTS, BASELINE):
        family.remove_by_labels({RUN: run})
    del _shown[run]


def _set(gauge: Gauge, known: float | None) -> None:
    gauge.set(float("nan") if known is None else known)
