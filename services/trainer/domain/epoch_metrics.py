"""From episode summaries to the metrics of an epoch: plain means over episodes, long and short alike. Pure arithmetic.

Two kinds of figures, because the end of an epoch cuts episodes short:

- Return, length, reward terms, deaths and habits are means over complete episodes: half a return says nothing.
- What only grows while an episode is played (`GROWING`) also counts in an open episode that has been played for as
  long as the complete ones were on average: it has had their time. Without it, an epoch shorter than its episodes
  would know the milestones of those that died, and a policy that learns to survive would seem to lose them. A shorter
  one does not count: it would pull the mean down for want of time.

Where no episode is complete, the open ones stand in for all.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

GROWING = frozenset({"milestones", "milestones_share", "rooms", "tiles"})
"""Facts that never shrink during an episode. One that can (a share of steps, say) would be counted half."""


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
    complete = [summary for summary in every if summary.complete]
    counted = complete or every
    if not counted:
        return {}
    length = mean(summary.steps for summary in counted)
    metrics = {
        "episodes": float(len(counted)),
        "return_mean": mean(summary.reward for summary in counted),
        "return_max": max(summary.reward for summary in counted),
        "length_mean": length,
    }
    for term in sorted({name for summary in counted for name in summary.terms}):
        metrics[f"reward/{term}"] = mean(summary.terms.get(term, 0.0) for summary in counted)
    grown = [summary for summary in every if summary.complete or summary.steps >= length] if complete else every
    return metrics | fact_metrics(counted, grown)


def fact_metrics(counted: Sequence[EpisodeSummary], grown: Sequence[EpisodeSummary]) -> dict[str, float]:
    """Mean and best of each fact: of `GROWING` over the episodes `grown`, of the others over `counted`."""
    metrics = {}
    for fact in sorted({name for summary in grown for name in summary.facts}):
        episodes = grown if fact in GROWING else counted
        values = [summary.facts.get(fact, 0.0) for summary in episodes if summary.from_start]
        if values:
            metrics[f"{fact}_mean"] = mean(values)
            metrics[f"{fact}_max"] = max(values)
    return metrics


def mean(values: Iterable[float]) -> float:
    """Arithmetic mean of at least one value."""
    kept = list(values)
    return sum(kept) / len(kept)
