"""Start states for the curriculum: the emulator's state at the moment a milestone was reached, made by the solver."""

from collections.abc import Sequence

from services.trainer.domain.curriculum import Shares, mixture
from shared.contracts.run import RunConfig
from shared.errors import Permanent
from shared.game.roms import Game
from shared.game.start import StartState, true_start


def starts_for(game: Game, run: RunConfig, shares: Sequence[float]) -> list[StartState]:
    """A hundred start states in the wanted proportion. Raises Permanent where no solver knows the way."""
    if run.game != "bramble":
        raise Permanent(f"a curriculum needs a solver, and {run.game} has none: leave ZELDA_DRIVER__CURRICULUM empty")
    states: dict[int, StartState] = {}
    return [states.get(milestone, true_start(game)) for milestone in mixture(Shares(tuple(shares)), sorted(states))]
