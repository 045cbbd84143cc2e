"""What a run showed, in plain sentences: did it learn, did the judges agree, did reward models shape it."""

from collections.abc import Iterator, Mapping
from math import hypot
from typing import Final

from shared.contracts.progress import EpochRow, RunSummary

NORMAL_95: Final = 1.96
CAUTION = "One run proves nothing about a way of training: `zelda study` compares several seeds."


def verdict(summary: RunSummary) -> list[str]:
    """At most a handful of sentences; a figure that was not measured is not mentioned."""
    rows = summary.epochs
    if not rows:
        return ["No epoch has finished, so there is nothing to judge yet."]
    return [*_progress(rows), *_judges(rows), *_reward_models(rows), *_alarms(rows), CAUTION]


def _progress(rows: list[EpochRow]) -> Iterator[str]:
    played = [(row.epoch, row.evaluation) for row in rows if row.evaluation]
    where = "evaluation"
    if not played:
        played, where = [(row.epoch, row.metrics) for row in rows], "training"
    played = [(epoch, facts) for epoch, facts in played if "milestones_mean" in facts]
    points = [(epoch, facts["milestones_mean"]) for epoch, facts in played]
    if not points:
        return
    (first, start), (last, end) = points[0], points[-1]
    best, most = max(points, key=lambda point: point[1])
    if first == last:
        yield f"It reached {start:.2f} milestones per {where} episode in epoch {first}, the only one measured."
        return
    change = "stayed at" if abs(end - start) < 0.005 else "rose from" if end > start else "fell from"
    moved = f"{start:.2f}" if change == "stayed at" else f"{start:.2f} to {end:.2f}"
    peak = f"; the best was {most:.2f} in epoch {best}" if most > max(start, end) else ""
    doubt = ", which chance alone could explain" if _by_chance(played[0][1], played[-1][1]) else ""
    yield f"Milestones per {where} episode {change} {moved} between epoch {first} and epoch {last}{doubt}{peak}."


def _by_chance(first: Mapping[str, float], last: Mapping[str, float]) -> bool:
    """Whether two means over episodes differ, but by less than the 95 % interval of their difference."""
    change = abs(last.get("milestones_mean", 0.0) - first.get("milestones_mean", 0.0))
    error = hypot(first.get("milestones_sem", 0.0), last.get("milestones_sem", 0.0))
    return 0.005 <= change < NORMAL_95 * error


def _judges(rows: list[EpochRow]) -> Iterator[str]:
    judged, recorded = (sum(getattr(row, f"segments_{name}") for row in rows) for name in ("judged", "recorded"))
    agreements = [(row.agreement, row.segments_judged) for row in rows if row.agreement is not None]
    if not judged:
        yield f"Of {recorded} recorded segments, none is judged."
        return
    text = f"The judges scored {judged} of {recorded} recorded segments"
    if agreements and (weight := sum(number for _, number in agreements)):
        share = sum(agreement * number for agreement, number in agreements) / weight
        text += f"; their votes were unanimous in {share:.0%} of the dimensions"
    yield f"{text}."


def _reward_models(rows: list[EpochRow]) -> Iterator[str]:
    trained = [row for row in rows if row.reward_model_passed is not None]
    usable = sum(row.reason is None for row in trained)
    shaped = sum(row.reward_model is not None for row in rows)
    yield f"{usable} of {len(trained)} reward models may shape; {shaped} of {len(rows)} epochs were shaped by one."
    refused = next((row for row in reversed(rows) if row.reason), None)
    if refused is not None:
        yield f"The reward model of epoch {refused.epoch} is {refused.reason}."


def _alarms(rows: list[EpochRow]) -> Iterator[str]:
    yield from (f"Alarm after epoch {row.epoch}: {row.alarm}" for row in rows if row.alarm)
