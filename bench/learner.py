"""What the learner costs, and which part of it more learners share: `python bench/learner.py`.

CPU seconds of one torch thread, which other processes on the machine hardly change. Building the batch (values,
advantages, curiosity) stays with the driver's learner; the gradient steps are shared (docs/adr/0018).
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `python bench/x.py` starts without it

BATCHES = (4_096, 5_120, 20_480, 51_200)  # of one runner shape, and of two env runners on each of 5, 20 and 50 workers


def main(argv: list[str] | None = None) -> int:
    """Print a row for each batch."""
    parser = argparse.ArgumentParser(prog="python bench/learner.py", description=__doc__)
    parser.add_argument("--batches", type=int, nargs="+", default=list(BATCHES), help="steps in a batch")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    given = parser.parse_args(argv)
    from bench.harness.learning.learner_cost import measured

    found = [measured(batch) for batch in given.batches]
    if given.json:
        sys.stdout.write(json.dumps([asdict(one) for one in found]) + "\n")
        return 0
    head = "| batch | minibatch | building | gradients | shared | steps per CPU second |\n|---|---|---|---|---|---|"
    sys.stdout.write("\n".join([head, *(one.row() for one in found)]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
