"""How long an episode of a world must be: a factor times the walk-through of the solver, which knows the world.

With one length for all worlds, episodes of the vale would end before a perfect player could finish it.
"""

from math import ceil
from typing import Final

from bramble.solver.walkthrough import solve

STEP_FRAMES: Final = 4  # frames of one step of the solver
FACTOR: Final = 3.5  # garden keeps its 400 steps at 12 frames; with 1, only a perfect player could finish
ROUNDED: Final = 100  # steps
WALKS: Final = {"garden": 336, "vale": 1_950, "realm": 19_111}
"""Steps of the walk-through. The realm's takes minutes to play; tests compare these numbers with the solver."""


def episode_length(world: str, frame_skip: int) -> int:
    """Steps of `frame_skip` frames after which an episode of this world is truncated, rounded up to hundreds."""
    walk = WALKS.get(world) or solve(world).steps
    return ceil(FACTOR * walk * STEP_FRAMES / frame_skip / ROUNDED) * ROUNDED
