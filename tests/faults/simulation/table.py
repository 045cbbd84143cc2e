"""Writes the result of a simulation: `python -m tests.faults.simulation.table [STATE]`.

With the state file of a simulation, its chunks become docs/results/faults/simulation.json. Then the block
`<!-- simulation -->` of docs/soak.md is written from that file.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from tests.faults.results_page import origin, ranges, results_file, table, write_page, write_results
from tests.faults.simulation.chunks import Chunk, read_chunks

NAME: Final = "simulation"
RESULTS: Final = results_file(NAME)
NOT_MEASURED: Final = "Not measured yet: `python -m tests.faults.simulation --state FILE` plays the histories."
HEAD: Final = ("histories", "seeds", "with violations", "minutes", "histories per second")


def content_of(chunks: Iterable[Chunk]) -> dict[str, Any]:
    """The content of the results file: the chunks in the order of their seeds."""
    return {"chunks": [asdict(one) for one in sorted(chunks, key=lambda one: one.first)]}


def block(content: Mapping[str, Any]) -> str:
    """How many histories there were, how many violated a guarantee, and how long they took."""
    chunks = [Chunk(**one) for one in content["chunks"]]
    seeds = sorted({seed for one in chunks for seed in range(one.first, one.first + one.histories)})
    failed = sorted({seed for one in chunks for seed in one.failed})
    seconds = sum(one.seconds for one in chunks)
    row = [f"{len(seeds):,}", ranges(seeds), str(len(failed)), f"{seconds / 60:.1f}", f"{len(seeds) / seconds:.0f}"]
    source = origin(content, "python -m tests.faults.simulation", RESULTS, "chunks") + ", in one process:"
    parts = [source, table(HEAD, [row])]
    return "\n\n".join(parts + ([f"Seeds with violations: {ranges(failed)}."] if failed else []))


def main() -> None:
    """Write the results file, if a state file is given, and the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.simulation.table", description=__doc__)
    parser.add_argument("state", type=Path, nargs="?", help="state file of a simulation")
    state = parser.parse_args().state
    if state is not None:
        chunks = read_chunks(state)
        if not chunks:
            sys.exit(f"{state} holds no finished chunk: `python -m tests.faults.simulation --state {state}` plays them")
        write_results(RESULTS, content_of(chunks.values()))
    write_page(NAME, block, NOT_MEASURED)


if __name__ == "__main__":
    main()
