"""What training costs over the bare emulator, and against a peer: `python bench/train.py`.

On two cores: the emulator alone, the environment, sampling through RLlib, sampling and learning, the same with
recording and shaping, and stable-baselines3's PPO on the same environment with the same batch, epochs and networks.
All on the load ROM (keys without prefix) and on Bramble (`bramble_...`). Learners take turns of a few batches.

`train_recording` records as a run does by default (a fifth of the segments here), `train_recording_all` every segment;
the time of both ends when the last segment is in the store. Every policy stays random (a learning rate of almost
nothing), because what a policy does decides what the emulator has to do.
"""

import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `python bench/x.py` starts without it

from bench.harness.measure import Figures, arguments, ratio, report

ROUNDS = 8


def main() -> int:
    """Measure both games and print the table."""
    options = arguments(__doc__ or "")
    import ray

    from bench.harness import training  # torch and ray take seconds to import

    ray.init(address="local", num_cpus=4 * training.CORES, include_dashboard=False, log_to_driver=False)
    figures: Figures = {}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, prefix in (("cpu_bound", ""), ("bramble", "bramble_")):
            rates = training.measure(name, 1 if options.quick else ROUNDS, folder)
            figures |= {f"{prefix}{key}": statistics.median(values) for key, values in rates.items()}
            figures[f"{prefix}recording_over_train"] = ratio(rates["train_recording"], rates["train"])
            figures[f"{prefix}recording_all_over_train"] = ratio(rates["train_recording_all"], rates["train"])
            figures[f"{prefix}train_over_peer"] = ratio(rates["train"], rates["stable_baselines3"])
            rows += [(f"{name}: {key}", f"{statistics.median(values):,.0f} steps/s") for key, values in rates.items()]
    report(training.TITLE, rows, figures, options.json)
    ray.shutdown()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
