"""Results of fault campaigns in the docs: a results file with its machine and date, and a block of docs/soak.md.

The block `<!-- NAME -->` to `<!-- end of NAME -->` is written from docs/results/faults/NAME.json.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence, Sized
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "docs/results/faults"
PAGE: Final = ROOT / "docs/soak.md"

Finished = TypeVar("Finished", bound=Sized)
Block = Callable[[Mapping[str, Any]], str]
"""The text of a block, from the content of its results file."""


def results_file(name: str) -> Path:
    """The results file of a block."""
    return FOLDER / f"{name}.json"


def write_results(file: Path, content: Mapping[str, Any], date: str | None = None) -> None:
    """Write a results file with the number of this machine's cores and a date, by default today's."""
    head = {"cores": os.cpu_count(), "date": date or datetime.now(UTC).date().isoformat()}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({**head, **content}, indent=1) + "\n", encoding="utf-8")


def generated(page: str, name: str, results: Path, block: Block, otherwise: str) -> str:
    """The text of a page with the block of the results file, or with `otherwise` while there is no such file."""
    text = block(json.loads(results.read_text(encoding="utf-8"))) if results.exists() else otherwise
    place = re.compile(rf"<!-- {name} -->\n.*?<!-- end of {name} -->", re.DOTALL)
    return place.sub(lambda _: f"<!-- {name} -->\n{text}\n<!-- end of {name} -->", page)


def write_page(name: str, block: Block, otherwise: str) -> None:
    """Write the block of docs/soak.md again."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(generated(text, name, results_file(name), block, otherwise), encoding="utf-8")


def write_campaign(
    name: str,
    read: Callable[[Path], Finished],
    content_of: Callable[[Finished], Mapping[str, Any]],
    block: Block,
    otherwise: str,
) -> None:
    """The command `python -m tests.faults.NAME.table [STATE]`: what a state file holds becomes results file and block.

    Without a state file the block alone is written, from the results file.
    """
    module = f"tests.faults.{name}"
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}.table", description=f"Writes the results of `python -m {module}` into docs/soak.md."
    )
    parser.add_argument("state", type=Path, nargs="?", help="state file; default: the results file as it is")
    state = parser.parse_args().state
    if state is not None:
        finished = read(state)
        if not len(finished):
            sys.exit(f"{state} holds nothing that is finished: `python -m {module} --state {state}` goes on")
        write_results(results_file(name), content_of(finished))
    write_page(name, block, otherwise)


def origin(content: Mapping[str, Any], command: str, file: Path, what: str) -> str:
    """Where the figures come from: command, machine, date, and a link to the results file."""
    return f"`{command}` ({content['cores']} cores, {content['date']}, [{what}](results/faults/{file.name}))"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)])


def ranges(seeds: Sequence[int]) -> str:
    """Ascending seeds in a few characters: `0-6, 9`."""
    parts: list[list[int]] = []
    for seed in seeds:
        if parts and seed == parts[-1][-1] + 1:
            parts[-1][-1] = seed
        else:
            parts.append([seed, seed])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
