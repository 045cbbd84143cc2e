"""Speed of the emulator with Bramble and with a ROM as heavy as a commercial game: `python bench/emulator.py`.

Frames per second of CPU time in one process, without pictures unless stated.
"""

import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `python bench/x.py` starts without it

from bench.harness.games import GAMES
from bench.harness.measure import arguments, interleave, ratio, report
from shared.game.emulator.emulator import Emulator
from shared.game.emulator.start import true_start

ROUNDS, STEPS = 11, 400


def frames_per_second(emulator: Emulator, skip: int, render: bool) -> Callable[[], float]:
    """A job that plays random actions and returns frames per CPU second."""
    rng = random.Random(0)
    steps = STEPS * 4 // skip

    def job() -> float:
        actions = [rng.randrange(8) for _ in range(steps)]
        began = time.process_time()
        for action in actions:
            emulator.step(action, skip, render)
        return steps * skip / (time.process_time() - began)

    return job


def cost_of(call: Callable[[], object], times: int = 20) -> float:
    """Median milliseconds of CPU time of a call."""
    costs = []
    for _ in range(times):
        began = time.process_time()
        call()
        costs.append((time.process_time() - began) * 1000)
    return statistics.median(costs)


def images(emulator: Emulator) -> None:
    """Take and discard a thousand RAM images."""
    for _ in range(1000):
        emulator.image()


def main() -> None:
    """Measure and report."""
    options = arguments(__doc__)
    games = {"bramble vale": GAMES["bramble"](), "load ROM": GAMES["cpu_bound"]()}
    emulators = {name: Emulator(game) for name, game in games.items()}
    for name, emulator in emulators.items():
        emulator.load(true_start(games[name]).state)
    jobs = {
        f"{name}, {skip} frames a call{', picture of the last' if render else ''}": frames_per_second(
            emulator, skip, render
        )
        for skip, render in ((4, False), (24, False), (4, True))
        for name, emulator in emulators.items()
    }
    rates = interleave(jobs, 3 if options.quick else ROUNDS)
    rows = [(name, f"{statistics.median(values):9,.0f} frames/s") for name, values in rates.items()]
    bramble = emulators["bramble vale"]
    state = bramble.save()
    rows += [
        ("save a state", f"{cost_of(bramble.save):9.1f} ms"),
        ("load a state", f"{cost_of(lambda: bramble.load(state)):9.1f} ms"),
        ("RAM image", f"{cost_of(lambda: images(bramble)):9.2f} us"),
    ]
    at_four = [rates[f"{name}, 4 frames a call"] for name in games]
    at_24 = [rates[f"{name}, 24 frames a call"] for name in games]
    figures = {
        "bramble_over_load": ratio(*at_four),
        "bramble_over_load_24": ratio(*at_24),
        "bramble_frames_per_s": statistics.median(at_four[0]),
        "load_frames_per_s": statistics.median(at_four[1]),
    }
    report("Emulator", rows, figures, options.json)


if __name__ == "__main__":
    main()
