"""Writes the table of a campaign: `python -m tests.faults.soak.table [STATE]`.

With the state file of a campaign, its rounds become docs/results/faults/soak.json. Then the block `<!-- soak -->` of
docs/soak.md is written from that file.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tests.faults.soak.records import RoundRecord, hits_of_roles, read_rounds

ROOT: Final = Path(__file__).parents[3]
RESULTS: Final = ROOT / "docs/results/faults/soak.json"
PAGE: Final = ROOT / "docs/soak.md"
BLOCK: Final = re.compile(r"<!-- soak -->\n.*?<!-- end of soak -->", re.DOTALL)
NOT_MEASURED: Final = "Not measured yet: `python -m tests.faults.soak --state FILE` plays the rounds."
HEAD: Final = ("kind", "rounds", "faults", "lost", "doubled", "stuck", "failed", "seeds", "minutes")


def write_results(rounds: Sequence[RoundRecord], file: Path, date: str) -> None:
    """Write the rounds of a campaign as a results file, in the order of kind and seed."""
    ordered = sorted(rounds, key=lambda one: (one.kind, one.seed))
    content = {"cores": os.cpu_count(), "date": date, "rounds": [asdict(one) for one in ordered]}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def generated(page: str, results: Path) -> str:
    """The text of a page with the tables of the results file."""
    return BLOCK.sub(lambda _: f"<!-- soak -->\n{_block(results)}\n<!-- end of soak -->", page)


def _block(results: Path) -> str:
    if not results.exists():
        return NOT_MEASURED
    content: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    rounds = [RoundRecord(**one) for one in content["rounds"]]
    where = f"{content['cores']} cores, {content['date']}, [rounds](results/faults/soak.json)"
    source = f"`python -m tests.faults.soak` ({where}):"
    failures = [f"- {one.kind}, seed {one.seed}: {'; '.join(one.violations)}" for one in rounds if one.violations]
    parts = [source, kinds_table(rounds), "How often each process was hit, by fault:", roles_table(rounds)]
    return "\n\n".join(parts + (["Failed rounds:", "\n".join(failures)] if failures else []))


def kinds_table(rounds: Sequence[RoundRecord]) -> str:
    """One row for each kind, and their sum."""
    kinds = sorted({one.kind for one in rounds})
    rows = [_row(kind, [one for one in rounds if one.kind == kind]) for kind in kinds]
    return _table(HEAD, [*rows, _row("all", rounds)])


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
    return [name, *map(str, numbers), _ranges(sorted({one.seed for one in rounds})), f"{minutes:.0f}"]


def roles_table(rounds: Sequence[RoundRecord]) -> str:
    """One row for each process: all faults that hit it, and how often each did."""
    rows = []
    for role, faults in sorted(hits_of_roles(rounds).items()):
        named = ", ".join(f"{fault} {times}" for fault, times in sorted(faults.items()))
        rows.append([role, str(sum(faults.values())), named])
    return _table(("process", "hits", "faults"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)])


def _ranges(seeds: Sequence[int]) -> str:
    """Seeds in a few characters: `0-6, 9`."""
    parts: list[list[int]] = []
    for seed in seeds:
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def main() -> None:
    """Write the results file, if a state file is given, and the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak.table", description=__doc__)
    parser.add_argument("state", type=Path, nargs="?", help="state file of a campaign")
    state = parser.parse_args().state
    if state is not None:
        rounds = read_rounds(state)
        if not rounds:
            sys.exit(f"{state} holds no finished round: play them with `python -m tests.faults.soak --state {state}`")
        write_results(rounds, RESULTS, datetime.now(UTC).date().isoformat())
    PAGE.write_text(generated(PAGE.read_text(encoding="utf-8"), RESULTS), encoding="utf-8")


if __name__ == "__main__":
    main()
