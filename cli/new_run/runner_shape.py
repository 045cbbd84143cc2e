"""How many env runners and environments a run on this machine gets if its user names none."""

import math
from typing import Any, Final

SHAPE: Final = ("env_runners", "envs_per_runner")
ENVIRONMENTS: Final = 8  # of one process: fewer leave the networks idle, more only delay each batch
FEW_CORES: Final = 4
"""Below this, the driver samples itself: env runners would take turns with the learner (`python bench/runners.py`)."""


def with_runner_shape(config: dict[str, Any], cores: int) -> dict[str, Any]:
    """The configuration with a shape that is fast on this many cores, unless it names one."""
    from shared.contracts.run import RunConfig

    if any(name in config for name in SHAPE):
        return config
    runners = 0 if cores < FEW_CORES else cores - 1
    return {**config, "env_runners": runners, "envs_per_runner": _environments(config, RunConfig(), max(1, runners))}


def _environments(config: dict[str, Any], usual: Any, processes: int) -> int:
    """So many that each environment can complete a segment in an epoch."""
    steps, batch, segment = (
        config.get(name, getattr(usual, name)) for name in ("epoch_steps", "batch_size", "segment_steps")
    )
    if not all(isinstance(value, int) and value > 0 for value in (steps, batch, segment)):
        return ENVIRONMENTS  # the coordinator names the invalid field
    played = math.ceil(steps / batch) * batch
    return max(1, min(ENVIRONMENTS, int(played // segment // processes)))
