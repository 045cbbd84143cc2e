"""The results file of planners, and its tables: one row per planner."""

import json
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from studies.plans.figures import PlanRow
from studies.results import read_results_file
from studies.stats import Interval
from studies.whole_file import write_whole

HEAD = (
    "| planner | mode | situations (rooms) | valid replies | macros in the grammar | success (95 %) "
    "| s an answer: median, longest |\n|---|---|---|---|---|---|---|"
)
ORDERS_HEAD = (
    "| planner | texts | valid replies | macros named outside the grammar | of them carried out "
    "| success without and with the text | difference in points (95 %) |\n|---|---|---|---|---|---|---|"
)


class PlannerResults(BaseModel):
    """The file."""

    model_config = ConfigDict(extra="forbid")

    rows: dict[str, PlanRow] = Field(default_factory=dict)

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read the file. Raises InvalidStudy if it is missing or damaged."""
        return read_results_file(cls, file, "no results file of planners")

    def save(self, file: Path) -> None:
        """Write the file; a reader sees the old one or the new one."""
        data = {"rows": {name: row.model_dump(mode="json", exclude_none=True) for name, row in self.rows.items()}}
        write_whole(file, json.dumps(data, indent=1) + "\n")

    def tables(self) -> str:
        """All rows as Markdown: the modes, the texts with orders, and the commands."""
        modes = [line for name, row in self.rows.items() for line in _mode_lines(name, row)]
        orders = [line for name, row in self.rows.items() for line in _orders_line(name, row)]
        commands = [
            f"- `{name}`: `{row.command}` ({row.cores} cores, {row.date}; {', '.join(row.models)})"
            for name, row in self.rows.items()
        ]
        tables = ["\n".join([HEAD, *modes]), *(["\n".join([ORDERS_HEAD, *orders])] if orders else [])]
        return "\n\n".join([*tables, "\n".join(commands)])


def _mode_lines(name: str, row: PlanRow) -> list[str]:
    lines = []
    for mode, found in row.modes.items():
        grammar = "-" if found.in_grammar is None else f"{100 * found.in_grammar:.0f} % of {found.macros}"
        seconds = f"{found.seconds_median:.2f}, {found.seconds_longest:.2f}"
        cells = (
            f"`{name}`", mode, f"{found.asked} ({found.rooms})", percent(found.valid), grammar, percent(found.success),
            seconds,
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _orders_line(name: str, row: PlanRow) -> list[str]:
    orders = row.orders
    if orders is None:
        return []
    value, low, high = orders.difference_bounds
    cells = (
        f"`{name}`",
        str(orders.texts),
        percent(orders.valid),
        str(orders.outside_grammar),
        str(orders.outside_carried_out),
        f"{100 * orders.success_without:.0f} %, {100 * orders.success_with:.0f} %",
        f"{100 * value:.0f} ({100 * low:.0f} to {100 * high:.0f})",
    )
    return [f"| {' | '.join(cells)} |"]


def percent(interval: Interval) -> str:
    """A share and its interval, e.g. `90 % (60 to 98)`."""
    value, low, high = (round(100 * one) for one in interval)
    return f"{value} % ({low} to {high})"
