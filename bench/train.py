"""What training costs over the bare emulator, and against a peer: `python bench/train.py`.

On two cores: the emulator alone, the environment, sampling through RLlib, sampling and learning, the same with
recording and shaping, and stable-baselines3's PPO on the same environment with the same batch, epochs and networks.
All on the load ROM (keys without prefix) and on Bramble (`bramble_...`). Learners take turns of a few batches.

`train_recording` records as a run does by default (a fifth of the segments here), `train_recording_all` every segment;
the time of both ends when the last segment is in the store. Every policy stays random (a learning rate of almost
nothing), because what a policy does decides what the emulator has to do.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `python bench/x.py` starts without it

from bench.harness.measure import Figures, parser, ratio, report

GAMES = {"cpu_bound": "", "bramble": "bramble_"}  # prefix of the keys of each game's figures


def main() -> int:
    """Measure both games and print the table."""
    options = _options()
    import ray

    from bench.harness import training  # torch and ray take seconds to import

    ray.init(address="local", num_cpus=4 * training.CORES, include_dashboard=False, log_to_driver=False)
    rounds = 1 if options.quick else options.rounds
    figures: Figures = {}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, prefix in GAMES.items():
            if options.game not in (None, name):
                continue
            rates = training.measure(name, rounds, folder, options.recording)
            figures |= {f"{prefix}{key}": statistics.median(values) for key, values in rates.items()}
            figures[f"{prefix}recording_over_train"] = ratio(rates["train_recording"], rates["train"])
            figures[f"{prefix}recording_all_over_train"] = ratio(rates["train_recording_all"], rates["train"])
            if not options.recording:
                figures[f"{prefix}train_over_peer"] = ratio(rates["train"], rates["stable_baselines3"])
            rows += [(f"{name}: {key}", f"{statistics.median(values):,.0f} steps/s") for key, values in rates.items()]
    report(training.TITLE, rows, figures, options.json)
    ray.shutdown()
    return 0


def _options() -> argparse.Namespace:
    options = parser(__doc__ or "")
    options.add_argument("--recording", action="store_true", help="measure only what recording costs training")
    options.add_argument("--game", choices=GAMES, help="measure one game only")
    options.add_argument("--rounds", type=int, default=8, help="turns of each job")
    return options.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
