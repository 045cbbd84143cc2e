"""The page on PPO's values shows the pilots that were committed, and the defaults that runs have."""

import json
from pathlib import Path

from shared.contracts.learning.ppo import PpoConfig

DOCS = Path(__file__).parents[3] / "docs"


def cell(value: float | None) -> str:
    """A number as the page shows it; a missing one is a dash."""
    return "-" if value is None else f"{value:g}"


def test_the_ladder_on_the_page_is_the_committed_one() -> None:
    page = (DOCS / "ppo.md").read_text("utf-8")
    rows = json.loads((DOCS / "results/guides/ladder.json").read_text("utf-8"))["rows"]
    for row in rows:
        for place, seed in enumerate(row["seeds"]):
            figures = [cell(row[name][place]) for name in ("speed", "share", "finished", "rooms")]
            shown = [row["setting"], str(seed), f"{row['steps'][place]:,}", *figures]
            assert f"| {' | '.join(shown)} |" in page
    table = [line for line in page.partition("## The ladder")[2].splitlines() if line.startswith("| ")]
    assert len(table) == 1 + sum(len(row["seeds"]) for row in rows)


def test_the_page_names_the_defaults_of_runs() -> None:
    page, ppo = (DOCS / "ppo.md").read_text("utf-8"), PpoConfig()
    for field, value in (
        ("`epochs`, `minibatch`", f"{ppo.epochs}, {ppo.minibatch}"),
        ("`value_loss`", f"`{ppo.value_loss}`"),
        ("`advantage_floor`", f"{ppo.advantage_floor:g}"),
        ("`curiosity`, `curiosity_view`", f"{ppo.curiosity:g}, `{ppo.curiosity_view}`"),
        ("`warm_up_steps`", f"{ppo.warm_up_steps:,}"),
        ("`entropy`", f"{ppo.entropy:g}"),
    ):
        assert f"| {field} | {value} |" in page, field
