"""Start states for the curriculum: the emulator's states at which the walk-through reaches each milestone.

They are computed on demand, once per process, from the world's text. Nothing is kept on disk.
"""

import io
from collections.abc import Sequence
from functools import lru_cache

import bramble
from bramble.emulator import BrambleEmulator
from bramble.solver.walker import StuckError
from bramble.solver.walkthrough import WALKTHROUGHS, solve
from bramble.worlds.milestones import reached
from services.trainer.domain.curriculum import TRUE_START, CurriculumShares, mixture
from shared.contracts.run import Difficulty, RunConfig
from shared.errors import Permanent
from shared.game.emulator.start import StartState, true_start
from shared.game.games.game import Game


def starts_for(game: Game, run: RunConfig, shares: Sequence[float]) -> list[StartState]:
    """A hundred start states in the proportion of `shares`.

    Raises Permanent for a world without a walk-through, and for a share of a milestone that no episode can begin after.
    """
    if run.game != "bramble" or run.world not in WALKTHROUGHS:
        known = ", ".join(WALKTHROUGHS)
        raise Permanent(
            f"a curriculum needs a walk-through, and {run.world} of {run.game} has none (worlds with one: {known}): "
            "leave ZELDA_DRIVER__CURRICULUM empty"
        )
    asked = CurriculumShares(tuple(shares))
    try:
        states = milestone_states(run.world, run.seed, run.difficulty)
    except StuckError as error:
        raise Permanent(
            f"the walk-through of {run.world} does not end with seed {run.seed} at difficulty {run.difficulty} "
            f"({error}): leave ZELDA_DRIVER__CURRICULUM empty, or take another seed"
        ) from error
    if asked.last > len(states):
        raise Permanent(
            f"ZELDA_DRIVER__CURRICULUM has a share for milestone {asked.last}, and episodes of {run.world} can begin "
            f"after its first {len(states)} milestones: shorten the list"
        )
    return [true_start(game) if number == TRUE_START else states[number - 1] for number in mixture(asked)]


@lru_cache(maxsize=8)
def milestone_states(world: str, seed: int, difficulty: Difficulty = "normal") -> tuple[StartState, ...]:
    """The states at which the walk-through reaches each milestone except the last, in that order.

    Raises StuckError if the walk-through does not end.
    """
    open_ = list(bramble.world(world).milestones)
    states: list[StartState] = []

    def look(game: BrambleEmulator) -> None:
        for milestone in [one for one in open_ if reached(one, game.read)]:
            open_.remove(milestone)
            states.append(StartState(milestone.name, _saved(game)))

    solve(world, seed, look, difficulty)
    return tuple(states[:-1])  # after the last milestone there is nothing left to learn


def _saved(game: BrambleEmulator) -> bytes:
    buffer = io.BytesIO()
    game.pyboy.save_state(buffer)
    return buffer.getvalue()
