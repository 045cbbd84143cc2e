"""The claim of the README in one paragraph, from a results file: who finishes the world, and who learns faster."""

from collections.abc import Mapping
from typing import Any

from studies.curves import SUCCESS
from studies.report.tables import compared
from studies.summary import SUBJECT


def claim(summary: Mapping[str, Any], steps: int) -> str:
    """Say how many trials of each arm finish the world, and compare the judges with every arm. `steps` per trial."""
    arms, against = summary["arms"], summary["against"]
    others = ", ".join(f"`{name}` {_finishing(arm)}" for name, arm in arms.items() if name != SUBJECT)
    rows = "; ".join(f"`{name}` {compared(row)}" for name, row in against.items())
    return (
        f"In {', '.join(summary['worlds'])}, with rewards for exploration only, {_finishing(arms[SUBJECT])} trials "
        f"with a reward model of the judges' votes finish the world within {steps:,} steps; other arms: {others}. "
        f"Probability that a trial with judges learns faster (95 % interval, exact p), against each arm: {rows}."
    )


def _finishing(arm: Mapping[str, Any]) -> str:
    """How many trials finish at least the share SUCCESS of their last evaluation episodes."""
    return f"{sum(share >= SUCCESS for share in arm['finished'])} of {len(arm['finished'])}"
