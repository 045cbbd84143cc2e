"""Training environments whose episodes begin in a room with an open puzzle."""

from typing import Any

from bench.assisted_play.open_puzzle import beside_the_button
from services.trainer.rl.rllib_env import RLlibVectorEnv


class PuzzleEnv(RLlibVectorEnv):
    """See beside_the_button."""

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode beside the button in every environment."""
        super().reset(seed=seed, options=options)
        games = self._open_games()
        games.set_starts([beside_the_button(games.sessions[0])])
        return super().reset(seed=seed, options=options)
