"""Training environments whose episodes begin in a room with an open puzzle."""

from collections.abc import Sequence
from typing import Any

from bench.assisted_play.open_puzzle import beside_the_button
from services.trainer.env.who_acts import ActionSource, SuggestionSource
from services.trainer.rl.rllib_env import RLlibVectorEnv


class PuzzleEnv(RLlibVectorEnv):
    """See beside_the_button. Its planners and guides can be taken away and given back."""

    _assistants: Sequence[tuple[ActionSource | None, SuggestionSource | None]] = ()

    def assist(self, on: bool) -> None:
        """Play on with the planner and the guide of each game, or without them."""
        sessions = self._open_games().sessions
        if not self._assistants:
            self._assistants = [(session.takeover, session.guide) for session in sessions]
        for session, (takeover, guide) in zip(sessions, self._assistants, strict=True):
            session.takeover, session.guide = (takeover, guide) if on else (None, None)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode beside the button in every environment."""
        super().reset(seed=seed, options=options)
        games = self._open_games()
        games.set_starts([beside_the_button(games.sessions[0])])
        return super().reset(seed=seed, options=options)
