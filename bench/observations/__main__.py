"""What each observation costs: an environment's steps, and a gradient step's samples: `python -m bench.observations`.

All are measured in turns within one run, in CPU time of one thread, on Bramble's garden.
"""

import random
import statistics
import time
from collections.abc import Callable
from typing import Final, get_args

from bench.harness.measure import Figures, arguments, interleave, ratio, report
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.env.spaces import observation_space
from shared.contracts.run import ObservationName

OBSERVATIONS: Final[tuple[ObservationName, ...]] = get_args(ObservationName)
BASE: Final = "obs/v2"  # the default of new runs
STEPS: Final = 300
SAMPLES: Final = 256  # of a gradient step
ACTIONS: Final = 8
ROUNDS: Final = 21


def playing(observation: ObservationName) -> Callable[[], float]:
    """Play with random actions: steps per CPU second."""
    session = GameSession(EnvConfig(world="garden", observation=observation))
    session.reset()
    rng = random.Random(0)

    def job() -> float:
        actions = [rng.randrange(ACTIONS) for _ in range(STEPS)]
        began = time.process_time()
        for action in actions:
            if session.step(action).report is not None:
                session.reset()
        return STEPS / (time.process_time() - began)

    return job


def learning(observation: ObservationName) -> Callable[[], float]:
    """Forward and backward through the policy's network: samples per CPU second."""
    import torch

    from services.trainer.rl.module import HIDDEN, build_network

    torch.set_num_threads(1)
    shape = observation_space(observation).shape
    network = build_network(shape, HIDDEN, ACTIONS)
    seen = torch.zeros((SAMPLES, *shape), dtype=torch.uint8 if len(shape) > 1 else torch.float32)

    def job() -> float:
        began = time.process_time()
        network(seen).square().mean().backward()
        return SAMPLES / (time.process_time() - began)

    return job


def main() -> None:
    """Measure and report."""
    options = arguments(__doc__ or "")
    rounds = 3 if options.quick else ROUNDS
    steps = interleave({name: playing(name) for name in OBSERVATIONS}, rounds)
    samples = interleave({name: learning(name) for name in OBSERVATIONS}, rounds)
    rows, figures = [], Figures()
    for name in OBSERVATIONS:
        share, slower = ratio(steps[name], steps[BASE]), ratio(samples[name], samples[BASE])
        played, learnt = statistics.median(steps[name]), statistics.median(samples[name])
        rows.append((name, f"{played:7,.0f} steps/s ({share:.2f})   {learnt:9,.0f} samples/s ({slower:.3f})"))
        figures |= {f"steps_over_{BASE}:{name}": share, f"samples_over_{BASE}:{name}": slower}
    report("Observations, CPU time of one thread", rows, figures, options.json)


if __name__ == "__main__":
    main()
