"""Writes the result of a simulation: `python -m tests.faults.simulation.table [STATE]`.

With the state file of a simulation, its chunks become docs/results/faults/simulation.json. Then the block
`<!-- simulation -->` of docs/soak.md is written from that file.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final

from tests.faults.results_page import origin, ranges, results_file, table, write_campaign
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
    source = origin(content, "python -m tests.faults.simulation", RESULTS, "chunks") + ", each history in one process:"
    parts = [source, table(HEAD, [row])]
    return "\n\n".join(parts + ([f"Seeds with violations: {ranges(failed)}."] if failed else []))


if __name__ == "__main__":
    write_campaign(NAME, lambda state: [*read_chunks(state).values()], content_of, block, NOT_MEASURED)
