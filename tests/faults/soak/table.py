"""Writes the table of a campaign: `python -m tests.faults.soak.table [STATE]`.

With the state file of a campaign, its rounds become docs/results/faults/soak.json. Then the block `<!-- soak -->` of
docs/soak.md is written from that file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from tests.faults.results_page import origin, ranges, results_file, table, write_campaign
from tests.faults.soak.records import RoundRecord, hits_of_roles, read_rounds

NAME: Final = "soak"
RESULTS: Final = results_file(NAME)
NOT_MEASURED: Final = "Not measured yet: `python -m tests.faults.soak --state FILE` plays the rounds."
HEAD: Final = ("kind", "rounds", "faults", "lost", "doubled", "stuck", "failed", "seeds", "minutes")


def content_of(rounds: Sequence[RoundRecord]) -> dict[str, Any]:
    """The content of the results file: the rounds of a campaign, in the order of kind and seed."""
    return {"rounds": [asdict(one) for one in sorted(rounds, key=lambda one: (one.kind, one.seed))]}


def block(content: Mapping[str, Any]) -> str:
    """The tables of the page."""
    rounds = [RoundRecord(**one) for one in content["rounds"]]
    source = origin(content, "python -m tests.faults.soak", RESULTS, "rounds") + ":"
    failures = [f"- {one.kind}, seed {one.seed}: {'; '.join(one.violations)}" for one in rounds if one.violations]
    parts = [source, kinds_table(rounds), "How often each process was hit, by fault:", roles_table(rounds)]
    return "\n\n".join(parts + (["Failed rounds:", "\n".join(failures)] if failures else []))


def kinds_table(rounds: Sequence[RoundRecord]) -> str:
    """One row for each kind, and their sum."""
    kinds = sorted({one.kind for one in rounds})
    rows = [_row(kind, [one for one in rounds if one.kind == kind]) for kind in kinds]
    return table(HEAD, [*rows, _row("all", rounds)])


def _row(name: str, rounds: Sequence[RoundRecord]) -> list[str]:
    numbers = (
        len(rounds),
        sum(one.number for one in rounds),
        sum(one.lost for one in rounds),
        sum(one.doubled for one in rounds),
        sum(one.stuck for one in rounds),
        sum(bool(one.violations) for one in rounds),
    )
    minutes = sum(one.seconds for one in rounds) / 60
    return [name, *map(str, numbers), ranges(sorted({one.seed for one in rounds})), f"{minutes:.0f}"]


def roles_table(rounds: Sequence[RoundRecord]) -> str:
    """One row for each process: all faults that hit it, and how often each did."""
    rows = []
    for role, faults in sorted(hits_of_roles(rounds).items()):
        named = ", ".join(f"{fault} {times}" for fault, times in sorted(faults.items()))
        rows.append([role, str(sum(faults.values())), named])
    return table(("process", "hits", "faults"), rows)


if __name__ == "__main__":
    write_campaign(NAME, read_rounds, content_of, block, NOT_MEASURED)
