"""The result of a study in plain language: where judges help, where they do not, and what the study does not show."""

from collections.abc import Mapping
from statistics import fmean
from typing import Any, Final

from studies.arms import ARMS
from studies.report.tables import compared
from studies.summary import MODEL, SUBJECT

CONVINCING_P: Final = 0.01  # seven comparisons: at 0.05, one in three studies without any effect would show a win
CLAIM_SEEDS: Final = 10
DEVELOPMENT_SEEDS: Final = range(10)


def verdict(summary: Mapping[str, Any], steps: int) -> list[str]:
    """Return the sentences of the verdict. `steps` are those of each trial."""
    against, model = summary["against"], summary.get("llm_against", {})
    assisted = summary.get("assisted_against", {})
    if not against and not model and not assisted:
        return [
            "Nothing is compared: that needs a trial of `judges`, `llm` or an assisted arm, and one of another arm."
        ]
    lines = _outcomes("Judges learn", "judges", against)
    lines += _outcomes("Agents with a language model's labels (`llm`) learn", "`llm`", model)
    for arm, rows in assisted.items():
        lines += _outcomes(f"Agents of the arm `{arm}` learn", f"`{arm}`", rows)
    return [*lines, *_labels(summary), *_suggestions(summary), *_limits(summary, steps)]


def _outcomes(learn: str, subject: str, against: Mapping[str, Any]) -> list[str]:
    found: dict[str, list[str]] = {"better": [], "worse": [], "open": []}
    for name, row in against.items():
        found[_outcome(row)].append(f"{ARMS[name].title} (`{name}`): {compared(row)}")
    lines = [f"{learn} faster than {text}." for text in found["better"]]
    lines += [f"{learn} more slowly than {text}." for text in found["worse"]]
    return [*lines, *(f"No difference is shown between {subject} and {text}." for text in found["open"])]


def _labels(summary: Mapping[str, Any]) -> list[str]:
    """How well the labels of each arm order segments, as far as it was measured."""
    means = {
        name: fmean(known)
        for name, arm in summary["arms"].items()
        if (known := [one for one in arm.get("label_accuracy", []) if one is not None])
    }
    if not means:
        return []
    shares = ", ".join(f"`{name}` {mean:.2f}" for name, mean in means.items())
    return [
        f"Share of pairs that differ in milestones gained and that the labels order rightly, mean of trials: {shares}."
    ]


def _suggestions(summary: Mapping[str, Any]) -> list[str]:
    """What became of the suggestions of each arm that had any."""
    lines = []
    for name, arm in summary["arms"].items():
        counts = {outcome: sum(found) for outcome, found in arm.get("suggestions", {}).items()}
        if sum(counts.values()):
            shares = ", ".join(f"{outcome.replace('_', ' ')} {count:,}" for outcome, count in counts.items())
            lines.append(f"Suggestions to `{name}` over all trials: {shares}.")
    return lines


def _outcome(row: Mapping[str, Any]) -> str:
    """`better` or `worse` if interval and p agree, else `open`."""
    if row["p"] >= CONVINCING_P or row["low"] <= 0.5 <= row["high"]:
        return "open"
    return "better" if row["improvement"] > 0.5 else "worse"


def _limits(summary: Mapping[str, Any], steps: int) -> list[str]:
    """What the reader must not conclude."""
    worlds, model = summary["worlds"], bool(summary.get("llm_against"))
    assisted = summary.get("assisted_against", {})
    subjects = {SUBJECT: summary["against"], MODEL: summary.get("llm_against", {}), **assisted}
    compared = dict.fromkeys(arm for subject, rows in subjects.items() if rows for arm in (subject, *rows))
    seeds = {arm: summary["arms"][arm]["seeds"] for arm in ARMS if arm in compared}
    judges, unknown = (" and these judges", "other language models") if model else ("", "other planners and advisers")
    if not model and summary["against"]:
        judges, unknown = " and the rules judge", "judges that are language models"
    subject = "judges" if summary["against"] and not model and not assisted else "one arm"
    lines = [
        f"Each comparison gives the probability that a trial of {subject} has a higher learning speed, its 95 % "
        "bootstrap interval and the exact two-sided p of a permutation test; a difference counts if p is below "
        f"{CONVINCING_P}.",
        f"It holds for {_worlds(worlds)}, {steps:,} steps{judges}, and says nothing about other worlds, "
        f"longer training or {unknown}.",
    ]
    few = ", ".join(f"`{arm}` {len(found)}" for arm, found in seeds.items() if len(found) < CLAIM_SEEDS)
    if few:
        lines.append(f"With few seeds an arm ({few}), intervals are too narrow: a claim needs {CLAIM_SEEDS}.")
    if any(set(found) & set(DEVELOPMENT_SEEDS) for found in seeds.values()):
        lines.append("Seeds 0 to 9 were used during development; only other seeds support a claim.")
    return lines


def _worlds(worlds: list[str]) -> str:
    if len(worlds) == 1:
        return f"the world {worlds[0]}"
    return f"the worlds {', '.join(worlds)}, each a stratum of the bootstrap and of the permutations"
