"""Which number of env runners and environments trains fastest here: `python bench/runners.py`.

Every shape trains Bramble's vale with the defaults of a run, in turns of one batch. `default` is what
`zelda run start` chooses on this machine; until 2026-11-23 it was `3 x 1`.
"""

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `python bench/x.py` starts without it

from bench.harness.measure import Figures, interleave, parser, ratio, report

SHAPES = ((0, 4), (0, 8), (0, 16), (1, 8), (2, 4), (2, 8), (3, 1))
BATCH = 2_048
ROUNDS = 5


def main() -> int:
    """Measure every shape and print the table."""
    options = parser(__doc__ or "").parse_args()
    import ray

    from bench.harness.runner_shapes import session, turn  # torch and ray take seconds to import
    from cli.new_run.runner_shape import SHAPE, with_runner_shape
    from shared.process.cores import usable_cores

    ray.init(address="local", num_cpus=4 * len(SHAPES), include_dashboard=False, log_to_driver=False)
    runners, envs = (with_runner_shape({}, usable_cores())[name] for name in SHAPE)
    chosen = (runners, envs)
    sessions = {shape: session(*shape, BATCH) for shape in dict.fromkeys((*SHAPES, chosen))}
    jobs = {f"{runners} x {envs}": turn(one) for (runners, envs), one in sessions.items()}
    rates = interleave(jobs, 1 if options.quick else ROUNDS)
    best = max(rates, key=lambda name: statistics.median(rates[name]))
    default = "{} x {}".format(*chosen)
    figures: Figures = {
        "default_over_best": ratio(rates[default], rates[best]),
        "earlier_over_best": ratio(rates["3 x 1"], rates[best]),
    }
    rows = [(name, f"{statistics.median(values):,.0f} steps/s") for name, values in rates.items()]
    report(f"runners x environments, default {default}, best {best}", rows, figures, options.json)
    ray.shutdown()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
