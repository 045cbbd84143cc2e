"""Plays many simulated histories, e.g. 200,000 in a night: `python -m tests.faults.simulation --help`.

Each history follows from its seed. A failing one is printed with its seed and its shortest form. With `--state`, each
finished chunk is a line of that file, and the next call continues behind it. `python -m
tests.faults.simulation.table FILE` writes the result in docs.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.faults.simulation.chunks import Chunk, append_chunk, read_chunks
from tests.faults.simulation.history import Step, draw
from tests.faults.simulation.shrink import shortest
from tests.faults.simulation.simulation import fast_parsing, silence_logs, violations_of

CHUNK: Final = 1_000


def fails(steps: Sequence[Step]) -> bool:
    """Whether this history violates a guarantee."""
    return bool(violations_of(steps))


def report_failure(seed: int) -> str:
    """The shortest form of a failing history, one line for each step."""
    steps = shortest(draw(seed), fails)
    lines = [f"seed {seed}: {'; '.join(violations_of(steps))}", *(f"    {step}" for step in steps)]
    return "\n".join(lines)


def play_chunk(seeds: range) -> Chunk:
    """Play the histories of these seeds."""
    began = time.perf_counter()
    failed = [seed for seed in seeds if fails(draw(seed))]
    return Chunk(seeds.start, len(seeds), round(time.perf_counter() - began, 1), failed)


def play(first: int, histories: int, state: Path | None) -> list[int]:
    """Play all chunks that the state file lacks; return the seeds of all failing histories."""
    done = read_chunks(state)
    failed: list[int] = []
    seconds = 0.0
    for begin in range(first, first + histories, CHUNK):
        seeds = range(begin, min(begin + CHUNK, first + histories))
        chunk = done.get(begin)
        if chunk is None or chunk.histories < len(seeds):
            chunk = play_chunk(seeds)
            append_chunk(chunk, state)
        failed += chunk.failed
        seconds += chunk.seconds
        _print(f"{seeds.stop - first} of {histories} histories in {seconds:.0f} s: {len(failed)} failed")
        for seed in chunk.failed:
            _print(report_failure(seed))
    return failed


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    """Run what the command line describes; 1 if a history violated a guarantee."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.simulation", description=__doc__)
    parser.add_argument("--histories", type=int, default=200_000, help="default: 200000")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first history (default: 0)")
    parser.add_argument("--state", type=Path, help="file of finished chunks, to continue after an interruption")
    options = parser.parse_args()
    silence_logs()
    with fast_parsing():
        failed = play(options.seed, options.histories, options.state)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
