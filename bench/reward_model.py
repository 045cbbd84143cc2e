"""Measures the reward model on one core: training on 100,000 pairs, the card's report, and inference per step.

Usage: python bench/reward_model.py [--segments N] [--json FILE]. Keys: `train_s` (wall; the bar is under 30) and
`train_cpu_s` (CPU time, valid on a busy machine), both for two complete fits of all members; `report_cpu_s`; `pairs`,
distinct pairs over all members; `accuracy`; `inference_us` a step by batch size (the bar is under 15 for `net_1`).
"""

import argparse
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `python bench/x.py` starts without it


def main() -> None:
    """Print the figures as JSON; `--json` also writes them to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, default=16_700, help="16,700 give each member 100,000 pairs")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # the bars are for one core; numpy reads this on import
    from bench.harness.reward_model import measure

    text = json.dumps(measure(options.segments), indent=2)
    sys.stdout.write(text + "\n")
    if options.json:
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
