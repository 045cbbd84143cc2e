"""The result of a study in plain language: where judges help, where they do not, and what the study does not show."""

from collections.abc import Mapping
from typing import Any, Final

from studies.arms import ARMS
from studies.report.tables import compared
from studies.summary import SUBJECT

CONVINCING_P: Final = 0.01  # seven comparisons: at 0.05, one in three studies without any effect would show a win
CLAIM_SEEDS: Final = 10
DEVELOPMENT_SEEDS: Final = range(10)


def verdict(summary: Mapping[str, Any], steps: int) -> list[str]:
    """Return the sentences of the verdict. `steps` are those of each trial."""
    against = summary["against"]
    if not against:
        return ["No comparison is possible yet: it needs a finished trial of `judges` and one of another arm."]
    found: dict[str, list[str]] = {"better": [], "worse": [], "open": []}
    for name, row in against.items():
        found[_outcome(row)].append(f"{ARMS[name].title} (`{name}`): {compared(row)}")
    lines = [f"Judges learn faster than {text}." for text in found["better"]]
    lines += [f"Judges learn more slowly than {text}." for text in found["worse"]]
    lines += [f"No difference is shown between judges and {text}." for text in found["open"]]
    return lines + _limits(summary, steps)


def _outcome(row: Mapping[str, Any]) -> str:
    """`better` or `worse` if interval and p agree, else `open`."""
    if row["p"] >= CONVINCING_P or row["low"] <= 0.5 <= row["high"]:
        return "open"
    return "better" if row["improvement"] > 0.5 else "worse"


def _limits(summary: Mapping[str, Any], steps: int) -> list[str]:
    """What the reader must not conclude."""
    worlds, seeds = summary["worlds"], summary["arms"][SUBJECT]["seeds"]
    each = len(seeds) // len(worlds)
    lines = [
        "Each comparison gives the probability that a trial of judges has a higher learning speed, its 95 % bootstrap "
        f"interval and the exact two-sided p of a permutation test; a difference counts if p is below {CONVINCING_P}.",
        f"It holds for {_worlds(worlds)}, {steps:,} steps and the rules judge, and says nothing about other worlds, "
        "longer training or judges that are language models.",
    ]
    if each < CLAIM_SEEDS and len(worlds) == 1:
        lines.append(f"With {each} seeds an arm, intervals are too narrow: a claim needs {CLAIM_SEEDS}.")
    if set(seeds) & set(DEVELOPMENT_SEEDS):
        lines.append("Seeds 0 to 9 were used during development; only other seeds support a claim.")
    return lines


def _worlds(worlds: list[str]) -> str:
    if len(worlds) == 1:
        return f"the world {worlds[0]}"
    return f"the worlds {', '.join(worlds)}, each a stratum of the bootstrap and of the permutations"
