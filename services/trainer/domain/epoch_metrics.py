"""Computes the metrics of an epoch from episode summaries: unweighted means over episodes. Pure arithmetic.

The end of an epoch cuts episodes short, so there are two kinds of metrics:

- Return, length, reward terms, deaths and behaviour are means over complete episodes: half a return means nothing.
- Facts that only grow during an episode (`GROWING`) also count in an open episode that is at least as long as the
  complete ones on average. Otherwise, in an epoch shorter than its episodes, only those that died would count, and a
  policy that learns to survive would seem to lose milestones. A shorter open episode would pull the mean down.

Facts, and the average length that decides about open episodes, are of episodes from the true start alone: restarted
ones may be far shorter. All other metrics count every episode, wherever it began.

If no episode is complete, all open ones count.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import stdev

GOAL = "goal"
"""Fact: whether an episode reached the goal of the backward curriculum."""
LEG = "leg"
"""Fact: how many legs of its trajectory an episode has passed, with those before its start."""
GROWING = frozenset({GOAL, LEG, "milestones", "milestones_share", "rooms", "tiles"})
"""Facts that never shrink during an episode. A fact that can shrink (a share of steps) would be half measured."""


@dataclass(frozen=True, slots=True)
class EpisodeSummary:
    """The summary of one episode. `terms` are sums of reward terms, `facts` counts such as rooms or deaths."""

    episode: str
    steps: int
    reward: float
    terms: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, float] = field(default_factory=dict)
    complete: bool = True
    from_start: bool = True
    """False: it began at a later state, so its milestones do not count."""
    start: str = ""
    """The name of the state that it began at; empty in checkpoints of before 2026-11-24."""


def epoch_metrics(summaries: Iterable[EpisodeSummary]) -> dict[str, float]:
    """Metrics by name: `return_mean`, `reward/<term>`, `milestones_mean` ... Empty without episodes."""
    every = [summary for summary in summaries if summary.steps > 0]
    complete = [summary for summary in every if summary.complete]
    counted = complete or every
    if not counted:
        return {}
    metrics = {
        "episodes": float(len(counted)),
        "return_mean": mean(summary.reward for summary in counted),
        "return_max": max(summary.reward for summary in counted),
        **standard_error("return", [summary.reward for summary in counted]),
        "length_mean": mean(summary.steps for summary in counted),
    }
    for term in sorted({name for summary in counted for name in summary.terms}):
        metrics[f"reward/{term}"] = mean(summary.terms.get(term, 0.0) for summary in counted)
    return metrics | fact_metrics([summary for summary in every if summary.from_start])


def fact_metrics(every: Sequence[EpisodeSummary]) -> dict[str, float]:
    """Mean, best and standard error of each fact of these episodes; those of `GROWING` also of long open ones."""
    complete = [summary for summary in every if summary.complete]
    counted = complete or every
    if not counted:
        return {}
    length = mean(summary.steps for summary in counted)
    grown = [summary for summary in every if summary.complete or summary.steps >= length] if complete else every
    metrics = {}
    for fact in sorted({name for summary in grown for name in summary.facts}):
        values = [summary.facts.get(fact, 0.0) for summary in (grown if fact in GROWING else counted)]
        metrics[f"{fact}_mean"] = mean(values)
        metrics[f"{fact}_max"] = max(values)
        metrics |= standard_error(fact, values)
    return metrics


def standard_error(fact: str, values: Sequence[float]) -> dict[str, float]:
    """The standard error of the mean as `<fact>_sem`; a single episode has none."""
    return {f"{fact}_sem": stdev(values) / sqrt(len(values))} if len(values) > 1 else {}


def mean(values: Iterable[float]) -> float:
    """Arithmetic mean of at least one value."""
    kept = list(values)
    return sum(kept) / len(kept)
