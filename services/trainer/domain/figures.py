"""From episode summaries to the metrics of an epoch: means over episodes, shares over steps. Pure arithmetic.

An episode that the end of the epoch cut short counts for shares over steps, but not for means over episodes, because
its return and length say nothing about the policy. Only if there is no other, the cut ones stand in.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class EpisodeSummary:
    """What is kept of one episode. `terms` are sums of reward terms, `facts` counts such as rooms or deaths."""

    episode: str
    steps: int
    reward: float
    terms: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, float] = field(default_factory=dict)
    complete: bool = True
    from_start: bool = True
    """False: it began at a later milestone (curriculum), so its milestones are no achievement of its own."""


def epoch_metrics(summaries: Iterable[EpisodeSummary]) -> dict[str, float]:
    """Metrics by name: `return_mean`, `reward/<term>`, `milestones_mean` ... Empty if there was no episode."""
    every = [summary for summary in summaries if summary.steps > 0]
    counted = [summary for summary in every if summary.complete] or every
    if not counted:
        return {}
    metrics = {
        "episodes": float(len(counted)),
        "return_mean": mean(summary.reward for summary in counted),
        "return_max": max(summary.reward for summary in counted),
        "length_mean": mean(summary.steps for summary in counted),
    }
    for term in sorted({name for summary in counted for name in summary.terms}):
        metrics[f"reward/{term}"] = mean(summary.terms.get(term, 0.0) for summary in counted)
    fair = [summary for summary in counted if summary.from_start]
    for fact in sorted({name for summary in fair for name in summary.facts}):
        values = [summary.facts.get(fact, 0.0) for summary in fair]
        metrics[f"{fact}_mean"] = mean(values)
        metrics[f"{fact}_max"] = max(values)
    return metrics


def mean(values: Iterable[float]) -> float:
    """Arithmetic mean of at least one value."""
    kept = list(values)
    return sum(kept) / len(kept)
