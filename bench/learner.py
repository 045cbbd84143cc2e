"""What the learner costs, and which part of it more learners share: `python bench/learner.py`.

CPU seconds of one torch thread, which other processes on the machine hardly change. Building the batch (values,
advantages, curiosity) stays with the driver's learner; the gradient steps are shared (docs/adr/0018). The network
between learners is not part of it.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `python bench/x.py` starts without it

# A run's default, and three env runners on each of 5, 20 and 50 workers; with one learner more than there are workers.
LEARNERS = {4_096: 2, 7_680: 6, 30_720: 21, 76_800: 51}


def main(argv: list[str] | None = None) -> int:
    """Print a row for each batch."""
    parser = argparse.ArgumentParser(prog="python bench/learner.py", description=__doc__)
    parser.add_argument("--batch", type=int, help="steps in a batch; default: several")
    parser.add_argument("--learners", type=int, default=2, help="learners that share that batch")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    given = parser.parse_args(argv)
    from bench.harness.learning.learner_cost import measured

    batches = LEARNERS if given.batch is None else {given.batch: given.learners}
    found = [measured(batch, learners) for batch, learners in batches.items()]
    if given.json:
        sys.stdout.write(json.dumps([asdict(one) for one in found]) + "\n")
        return 0
    head = "| batch | minibatch | building | gradients | steps/s alone | learners | gradients, share | steps/s shared |"
    sys.stdout.write("\n".join([head, "|---" * 8 + "|", *(one.row() for one in found)]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
