"""The tables of a study in Markdown, from the data of `summary.summarise`."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from studies.arms import ARMS
from studies.curves import SCORES, SUCCESS, TITLES

Summary = Mapping[str, Any]


def arms_table(summary: Summary) -> str:
    """One row per arm: IQM with 95 % interval of each score, and how many trials finish the world."""
    heads = [f"{TITLES[score]}: IQM (95 %)" for score in SCORES]
    lines = [
        f"| arm | trials | {' | '.join(heads)} | trials that finish | first finished after, steps | epochs shaped |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, arm in summary["arms"].items():
        count = len(arm["seeds"])
        cells = [_interval(arm["iqm"][score], _seeds_in_a_world(arm)) for score in SCORES]
        sure = sum(share >= SUCCESS for share in arm["finished"])
        lines.append(
            f"| `{name}`: {ARMS[name].title} | {count} | {' | '.join(cells)} | {sure} of {count} "
            f"| {_steps(arm['finished_after'])} | {sum(arm['shaped']) / count:.1f} |"
        )
    return "\n".join(lines) + "\n"


def comparisons_table(subject: str, against: Mapping[str, Any]) -> str:
    """One row per arm that `subject` is compared with: probability of improvement with interval and exact p."""
    heads = [f"{TITLES[score]}: probability (95 %), p" for score in SCORES]
    lines = [f"| {subject} against | trials | {' | '.join(heads)} |", "|---|---|---|---|---|"]
    for name, row in against.items():
        cells = [compared({**row, **(row[score] if score != "speed" else {})}) for score in SCORES]
        lines.append(f"| `{name}` | {row['seeds'][0]} + {row['seeds'][1]} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def milestones_table(summary: Summary) -> str:
    """One row per number of milestones: the steps until an evaluation episode of each arm's trials had as many."""
    arms = {name: arm["milestone_after"] for name, arm in summary["arms"].items() if "milestone_after" in arm}
    heads = "".join(f" `{name}` |" for name in arms)
    lines = [f"| milestones, first reached after steps: median (range) |{heads}", "|---|" + "---|" * len(arms)]
    for row in range(max(map(len, arms.values()))):
        cells = [_reached(found[row]) if row < len(found) else "never" for found in arms.values()]
        lines.append(f"| {row + 1} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def to_markdown(summary: Summary) -> str:
    """The table of the arms, that of milestones, and one of comparisons for each arm that is compared with others."""
    tables = [arms_table(summary)]
    if any(arm.get("milestone_after") for arm in summary["arms"].values()):
        tables.append(milestones_table(summary))
    for subject, key in (("judges", "against"), ("llm", "llm_against")):
        if summary.get(key):
            tables.append(comparisons_table(subject, summary[key]))
    tables += [comparisons_table(arm, rows) for arm, rows in summary.get("assisted_against", {}).items()]
    return "\n".join(tables)


def compared(row: Mapping[str, Any]) -> str:
    """A probability of improvement as text.

    One seed of each arm in each world has no interval: every resample of the bootstrap is the same.
    """
    worlds = len(row.get("worlds", ("the only one",)))
    interval = f"{row['low']:.2f} to {row['high']:.2f}"
    if max(row["seeds"]) == worlds:  # an arm has a seed in each of them
        interval = "one seed each" if worlds == 1 else "one seed each in a world, too few for an interval"
    return f"{row['improvement']:.2f} ({interval}), p = {p_text(row['p'])}"


def p_text(p: float) -> str:
    """A p value with the digits that matter."""
    return f"{p:.2f}" if p >= 0.1 else f"{p:.3f}" if p >= 0.001 else f"{p:.0e}".replace("e-0", "e-")


def _seeds_in_a_world(arm: Mapping[str, Any]) -> int:
    """The largest number of seeds in one world: with 1, every resample of the bootstrap is the same."""
    return max(Counter(arm["worlds"]).values()) if "worlds" in arm else len(arm["seeds"])


def _interval(found: Mapping[str, float], seeds: int) -> str:
    interval = "one seed" if seeds == 1 else f"{found['low']:.3f} to {found['high']:.3f}"
    return f"{found['value']:.3f} ({interval})"


def _reached(after: list[int | None]) -> str:
    """Median over trials, with their range; a trial that never reached it is slower than any other."""
    reached = sorted(steps for steps in after if steps is not None)
    if not reached:
        return "never"
    missing = len(after) - len(reached)
    if missing >= len(reached):
        return f"{len(reached)} of {len(after)} trials"
    slowest = "never" if missing else f"{reached[-1]:,}"
    lower_median = reached[(len(after) - 1) // 2]  # of all trials: those that never reached it sort last
    return f"{lower_median:,} ({reached[0]:,} to {slowest})"


def _steps(after: list[int | None]) -> str:
    """Range of the steps at which trials first finished, and how many did."""
    reached = sorted(steps for steps in after if steps is not None)
    if not reached:
        return "never"
    span = f"{reached[0]:,}" if reached[0] == reached[-1] else f"{reached[0]:,} to {reached[-1]:,}"
    return f"{span} ({len(reached)} of {len(after)})"
