"""Sums who helped the policy in an epoch from its episodes' facts. Pure arithmetic."""

from collections.abc import Iterable, Mapping

from services.trainer.domain.epoch_metrics import EpisodeSummary
from shared.contracts.driver import (
    ENDINGS,
    NEEDS,
    Assistance,
    Ending,
    ModelCalls,
    Need,
    QuestionMode,
    SuggestionOutcome,
)


def takeover_fact(need: Need, ending: Ending) -> str:
    """Name of an episode's fact: its takeovers for this need that ended so."""
    return f"takeovers_{need}_{ending}"


def epoch_assistance(
    summaries: Iterable[EpisodeSummary], calls: Mapping[QuestionMode, ModelCalls]
) -> Assistance | None:
    """The epoch's sums so far; None where nothing helped: no episode has such facts, and no model is asked."""
    facts = [summary.facts for summary in summaries]
    planned = [found for found in facts if "takeovers" in found]
    guided = [found for found in facts if "suggestions_asked" in found]
    if not (planned or guided or calls):
        return None
    return Assistance(
        takeovers=takeover_sums(planned) if planned else {},
        suggestions=suggestion_sums(guided) if guided else {},
        calls=dict(calls),
    )


def takeover_sums(facts: Iterable[Mapping[str, float]]) -> dict[Need, dict[Ending, int]]:
    """Takeovers by need and ending."""
    every = list(facts)
    return {need: {ending: total(every, takeover_fact(need, ending)) for ending in ENDINGS} for need in NEEDS}


def suggestion_sums(facts: Iterable[Mapping[str, float]]) -> dict[SuggestionOutcome, int]:
    """Suggestions by outcome. One that the policy saw when its episode ended counts as not taken."""
    every = list(facts)
    taken = total(every, "suggestions_taken")
    return {
        "taken": taken,
        "not_taken": total(every, "suggestions_shown") - taken,
        "stale": total(every, "suggestions_stale"),
        "missing": total(every, "suggestions_missing"),
        "skipped": total(every, "suggestions_skipped"),
    }


def total(facts: Iterable[Mapping[str, float]], name: str) -> int:
    """Sum of one fact, which is a count."""
    return round(sum(found.get(name, 0.0) for found in facts))
