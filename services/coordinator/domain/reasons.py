"""Says in words why a reward model is not used, and why an epoch was not shaped: for page, REST, CLI and report."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from services.coordinator.domain.reward_model_selection import check_over_optimisation
from services.coordinator.domain.run_view import EpochView
from shared.contracts.card import REWARD_MODEL_VIEWS, RewardModelCard
from shared.contracts.run import RunConfig

MAX_LENGTH: Final = 900  # characters: a row holds 1,000
Needed = Mapping[str, float]
Words = Callable[[RewardModelCard, Needed], str]


def refusal(epoch: EpochView) -> str | None:
    """Why the reward model trained after `epoch` shapes nothing, or None: it may shape, or there is no card yet."""
    return None if epoch.card is None else refusal_of(epoch.card.document)


def refusal_of(card: RewardModelCard) -> str | None:
    """Why this reward model shapes nothing, or None: it may shape."""
    if not card.gates_passed:
        return f"not used: {_failed_gates(card)}"
    if card.observation not in REWARD_MODEL_VIEWS:
        return f"not used: it reads {card.observation}, which this version does not know"
    return None


def unshaped(config: RunConfig, epochs: Sequence[EpochView]) -> str | None:
    """Why no reward model shaped the last of `epochs`; None if one did, or if the epoch has not finished."""
    *earlier, last = epochs
    if last.finished is None or last.finished.document.reward_model is not None:
        return None
    if config.shaping.mode == "none":
        return "not shaped: the configuration sets shaping.mode to none"
    if not earlier:
        return "not shaped: no reward model existed before epoch 0"
    former = next(epoch for epoch in reversed(earlier) if config.judges_epoch(epoch.epoch))  # epoch 0 at the latest
    if former.card is None or former.card.document.created > last.start.document.created:
        return f"not shaped: the reward model of epoch {former.epoch} was not ready"
    refused = refusal(former)
    if refused is None and former.epoch in check_over_optimisation(earlier).suspects:
        refused = "withdrawn, because judge scores rose while milestones fell"
    return f"not shaped: the reward model of epoch {former.epoch} was {refused}" if refused else None


def _failed_gates(card: RewardModelCard) -> str:
    failed = [name for name, passed in card.gates.items() if not passed]
    return "; ".join(_gate(card, name) for name in failed)[:MAX_LENGTH] or "it missed its gates"


def _gate(card: RewardModelCard, gate: str) -> str:
    words = _WORDS.get(gate)
    return words(card, card.thresholds) if words else f"it missed the gate {gate}"


def _quorum(card: RewardModelCard, _: Needed) -> str:
    if not card.outcomes:
        return "too few of the epoch's segments were judged"
    return f"only {card.outcomes.get('judged', 0)} of {sum(card.outcomes.values())} segments were judged"


def _count(what: str, value: Callable[[RewardModelCard], int], threshold: str) -> Words:
    return lambda card, needed: (
        f"{value(card)} {what}{f', {needed[threshold]:g} needed' if threshold in needed else ', too few'}"
    )


def _figure(what: str, value: Callable[[RewardModelCard], float | None], threshold: str, bound: str) -> Words:
    def words(card: RewardModelCard, needed: Needed) -> str:
        found = value(card)
        limit = f", {needed[threshold]:.2f} {bound}" if threshold in needed else ""
        return f"{what} {found:.2f}{limit}" if found is not None else f"{what} could not be measured"

    return words


def _lead(baseline: str, name: str, threshold: str) -> Words:
    def words(card: RewardModelCard, needed: Needed) -> str:
        own, other = card.accuracy.confident, card.baselines.get(baseline)
        if own is None or other is None:
            return f"its lead over {name} could not be measured"
        limit = f", {other + needed[threshold]:.2f} needed" if threshold in needed else ""
        return f"accuracy {own:.2f} against {other:.2f} of {name}{limit}"

    return words


def _shuffled(card: RewardModelCard, needed: Needed) -> str:
    found = card.baselines.get("shuffled_labels")
    if found is None:
        return "accuracy with shuffled labels could not be measured"
    known = "shuffled_low" in needed and "shuffled_high" in needed
    band = f", {needed['shuffled_low']:.2f} to {needed['shuffled_high']:.2f} expected" if known else ""
    return f"accuracy {found:.2f} with shuffled labels{band}"


_WORDS: Final[dict[str, Words]] = {
    "quorum": _quorum,
    "enough_pairs": _count("confident pairs", lambda card: card.accuracy.pairs, "pairs"),
    "enough_episodes": _count("episodes", lambda card: card.episodes, "episodes"),
    "accuracy_confident": _figure("accuracy", lambda card: card.accuracy.confident, "accuracy_confident", "needed"),
    "accuracy_all": _figure("accuracy on all pairs", lambda card: card.accuracy.all, "accuracy_all", "needed"),
    "beats_step_index": _lead("step_index", "the step index", "over_step_index"),
    "beats_linear": _lead("linear", "a linear model", "over_linear"),
    "shuffled_is_chance": _shuffled,
    "calibrated": _figure(
        "calibration error", lambda card: card.calibration.ece if card.calibration else None, "ece", "allowed"
    ),
    "spread": _figure("spread of scores", lambda card: card.spread, "spread", "needed"),
}
