"""The newest finished epoch as metrics: training, agreement of the judges, quality of the reward model.

The values come from the epoch's row. Only the leader sets them. There is no label for runs: of several runs, the one
that finished an epoch last is shown. No decision reads them.
"""

from typing import Final

from prometheus_client import Gauge

from shared.contracts.card import RewardModelCard
from shared.contracts.progress import EpochRow
from shared.telemetry import metrics

NUMBER: Final = metrics.gauge("epoch_number", "number of the newest finished epoch, from 0")
TRAINING: Final = metrics.gauge("epoch_training_value", "figures of its episodes, e.g. return_mean, rooms", ["figure"])
TERM: Final = metrics.gauge("epoch_reward_term_value", "mean return of an episode by reward term", ["term"])
LEARNER: Final = metrics.gauge("epoch_learner_value", "figures of its updates, e.g. kl, entropy", ["figure"])
EVALUATION: Final = metrics.gauge("epoch_evaluation_value", "figures of episodes without exploration", ["figure"])
SEGMENTS: Final = metrics.gauge("epoch_segments", "its segments by status, and those dropped", ["status"])
SCORE: Final = metrics.gauge("epoch_score_ratio", "mean score of its judged segments")
AGREEMENT: Final = metrics.gauge("epoch_agreement_ratio", "mean share of unanimous dimensions")
ACCURACY: Final = metrics.gauge("epoch_reward_model_accuracy_ratio", "held-out accuracy of the model trained after it")
PASSED: Final = metrics.gauge("epoch_reward_model_passed_state", "1 if that model passed its gates")
AGE: Final = metrics.gauge(
    "epoch_reward_model_age_epochs", "epochs between it and the epoch that trained its reward model"
)
ALARM: Final = metrics.gauge("epoch_alarm_state", "1 if reward models were withdrawn after it")

ECE: Final = metrics.gauge("reward_model_ece_ratio", "expected calibration error of the newest model, held out")
SPREAD: Final = metrics.gauge("reward_model_spread_value", "its standard deviation over the policy's states")
RANK: Final = metrics.gauge("reward_model_rank_correlation", "its Spearman correlation with the judges, held out")
BASELINE: Final = metrics.gauge("reward_model_baseline_ratio", "held-out accuracy of each baseline", ["baseline"])

_GROUPS: Final = (("reward/", TERM), ("learner/", LEARNER))
_LABELLED: Final = (TRAINING, TERM, LEARNER, EVALUATION)
_PLAIN: Final = (NUMBER, SCORE, AGREEMENT, ACCURACY, PASSED, AGE, ALARM, ECE, SPREAD, RANK)
for _gauge in _PLAIN:
    _gauge.set(float("nan"))  # before the first epoch the value is unknown; a new gauge would show 0


def set_epoch(row: EpochRow) -> None:
    """Set every gauge of an epoch from its row. An unknown value is NaN."""
    NUMBER.set(row.epoch)
    for family in _LABELLED:  # drop labels that only an earlier epoch had
        family.clear()
    for name, value in row.metrics.items():
        gauge, label = TRAINING, name
        for prefix, group in _GROUPS:
            if name.startswith(prefix):
                gauge, label = group, name.removeprefix(prefix)
        gauge.labels(label).set(value)
    for name, value in (row.evaluation or {}).items():
        EVALUATION.labels(name).set(value)
    for status in ("judged", "abstained", "dead", "waiting", "dropped"):
        SEGMENTS.labels(status).set(getattr(row, f"segments_{status}"))
    _set(SCORE, row.score_mean)
    _set(AGREEMENT, row.agreement)
    _set(ACCURACY, row.reward_model_accuracy)
    _set(PASSED, row.reward_model_passed)
    _set(AGE, None if row.reward_model_epoch is None else row.epoch - row.reward_model_epoch)
    ALARM.set(row.alarm is not None)


def set_card(card: RewardModelCard) -> None:
    """Set the gauges of the newest reward model from its card."""
    _set(ECE, card.calibration.ece if card.calibration else None)
    _set(SPREAD, card.spread)
    _set(RANK, card.rank_correlation)
    BASELINE.clear()
    for name, accuracy in card.baselines.items():
        _set(BASELINE.labels(name), accuracy)


def _set(gauge: Gauge, known: float | None) -> None:
    gauge.set(float("nan") if known is None else known)
