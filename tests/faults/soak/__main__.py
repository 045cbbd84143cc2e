"""Soak test: faults at random moments on the complete ring, before a release: `python -m tests.faults.soak --help`.

Each round is one run of real processes under one kind of fault, with ten faults or more. Every epoch must finish; every
listed segment must be judged exactly once. Unless segments may be dropped, segments, scores and reward models must
equal those of an undisturbed run. The exit code is 1 if a round violated a guarantee.

With `--state`, each finished round is a line of that file, and the next call continues behind it. A failing round is
repeated with `--kind KIND --seed SEED --rounds 1`. `python -m tests.faults.soak.table FILE` writes the table in docs.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from tests.faults.fault_injection import SCENARIOS
from tests.faults.soak.campaign import Campaign


def main() -> int:
    """Play the campaign that the command line describes."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", choices=[*SCENARIOS], action="append", help="may be given repeatedly; default: all")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each kind (default: 3)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first round (default: 0)")
    parser.add_argument("--jobs", type=int, default=1, help="rounds at a time (default: 1)")
    parser.add_argument("--state", type=Path, help="file of finished rounds, to continue after an interruption")
    parser.add_argument("--logs", type=Path, help="directory that receives the logs of each round's processes")
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + given.rounds)
    campaign = Campaign(given.kind or [*SCENARIOS], seeds, given.jobs, given.state, given.logs)
    rounds = asyncio.run(campaign.play())
    failed = [f"{one.kind} {one.seed}" for one in rounds if one.violations]
    sys.stdout.write(f"{len(rounds)} rounds, {len(failed)} failed{': ' if failed else ''}{', '.join(failed)}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
