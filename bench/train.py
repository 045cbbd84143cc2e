"""What training costs over the bare emulator, and against a peer: `python bench/train.py`.

On two cores: the emulator alone, the environment, sampling through RLlib, sampling and learning, the same with
recording and shaping, and stable-baselines3's PPO on the same environment with the same batch, epochs and networks.
All on the load ROM (keys without prefix) and on Bramble (`bramble_...`). Learners take turns of a few batches.

`train_over_raw_4` and `train_over_raw_24` are sampling and learning over the bare emulator at these frame_skips.
`study_steps_per_s` is what `zelda study garden` trains with one trial a core: reward models, judging, recording and
evaluation included, start-up not. `study_raw_steps_per_s` is the bare emulator on the same world and frame_skip, and
`study_evaluation_share` the steps of evaluation beside a training step: together they bound the study.

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

from bench.harness.measure import Figures, parser, ratio, ratio_within, report

GAMES = {"cpu_bound": "", "bramble": "bramble_"}  # prefix of the keys of each game's figures


def main() -> int:
    """Measure both games and print the table."""
    options = _options()
    import ray

    from bench.harness import study, training  # torch and ray take seconds to import

    ray.init(address="local", num_cpus=4 * training.CORES, include_dashboard=False, log_to_driver=False)
    rounds = 1 if options.quick else options.rounds
    figures: Figures = {}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, prefix in GAMES.items():
            if options.study or options.game not in (None, name):
                continue
            rates = training.measure(name, rounds, folder, options.recording)
            figures |= {f"{prefix}{key}": statistics.median(values) for key, values in rates.items()}
            figures[f"{prefix}recording_over_train"] = ratio(rates["train_recording"], rates["train"])
            figures[f"{prefix}recording_all_over_train"] = ratio(rates["train_recording_all"], rates["train"])
            if not options.recording:
                figures[f"{prefix}train_over_peer"] = ratio(rates["train"], rates["stable_baselines3"])
                figures[f"{prefix}train_over_raw_4"] = ratio(rates["train"], rates["raw"])
                figures[f"{prefix}train_over_raw_24"] = ratio(rates["train_24"], rates["raw_24"])
            rows += [(f"{name}: {key}", f"{statistics.median(values):,.0f} steps/s") for key, values in rates.items()]
            for key in ("train_recording", "train_recording_all"):
                low, high = ratio_within(rates[key], rates["train"])
                rows.append((f"{name}: {key} / train", f"95 % interval {low:.3f} to {high:.3f}"))
    ray.shutdown()
    if not options.recording and options.game is None:
        figures |= study.measure(2 if options.quick else options.epochs)
        rows += [(key, f"{figures[key]:,.0f} steps/s") for key in ("study_raw_steps_per_s", "study_steps_per_s")]
    report(training.TITLE, rows, figures, options.json)
    return 0


def _options() -> argparse.Namespace:
    options = parser(__doc__ or "")
    options.add_argument("--recording", action="store_true", help="measure only what recording costs training")
    options.add_argument("--study", action="store_true", help="measure only what a study trains")
    options.add_argument("--epochs", type=int, default=5, help="epochs of the study; the first is not measured")
    options.add_argument("--game", choices=GAMES, help="measure one game only")
    options.add_argument("--rounds", type=int, default=8, help="turns of each job")
    return options.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
