"""ZeldaEnv: the game as one Gymnasium environment (https://gymnasium.farama.org/api/env/).

8 actions: wait, up, down, left, right, A, B, START. A direction is held for `frame_skip` frames, the other buttons are
released halfway (`actions/v2`). Death and the end of the game terminate an episode, `episode_length` truncates it. At
an episode's end `info["report"]` holds its EpisodeReport as plain data.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, SupportsInt

import gymnasium
import numpy as np
from gymnasium import spaces

from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import EpisodeRecorder, EpisodeReport, GameSession
from services.trainer.env.pixels import PixelEncoder
from services.trainer.options.option_sets import choice_names
from shared.contracts.run import OptionsName
from shared.game.emulator.start import StartState
from shared.game.games.game import Game
from shared.game.observation import with_guidance
from shared.game.observation.versions import FEATURES


def observation_space(name: str, *, guided: bool = False) -> spaces.Box:
    """The Gymnasium space of an observation layout; with `guided`, of one that also shows a suggestion."""
    if name in FEATURES:
        return spaces.Box(-1.0, 1.0, (len(FEATURES[name]) + guided * with_guidance.SIZE,), np.float32)
    return spaces.Box(0, 255, PixelEncoder.shape, np.uint8)


def action_space(options: OptionsName = "none") -> "spaces.Discrete[np.int64]":
    """The space of the eight actions; with options, of those and the options."""
    return spaces.Discrete(len(choice_names(options)))


def report_info(report: EpisodeReport) -> dict[str, Any]:
    """An episode's report as plain data."""
    return asdict(report)


class ZeldaEnv(gymnasium.Env[np.ndarray, SupportsInt]):
    """One environment. `config` is an EnvConfig or its fields as plain data."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 60}  # noqa: RUF012

    def __init__(
        self,
        config: EnvConfig | dict[str, Any] | None = None,
        render_mode: str | None = None,
        recording: EpisodeRecorder | None = None,
        env: int = 0,
        game: Game | None = None,
    ) -> None:
        self.config = config if isinstance(config, EnvConfig) else EnvConfig.of(config or {})
        self.render_mode = render_mode
        self.observation_space = observation_space(self.config.observation, guided=self.config.guided)
        self.action_space = action_space(self.config.options)
        self.session = GameSession(self.config, env, recording, game)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin the next episode. A `seed` restarts the numbering of episodes under it."""
        super().reset(seed=seed)
        if seed is not None:
            self.session.reseed(seed)
        return self.session.reset().copy(), {"start": self.session.episode.start.name}

    def step(self, action: SupportsInt) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Make one step; see the class."""
        outcome = self.session.step(int(action))
        info = {} if outcome.report is None else {"report": report_info(outcome.report)}
        return outcome.observation.copy(), outcome.reward, outcome.terminated, outcome.truncated, info

    def render(self) -> np.ndarray | None:  # type: ignore[override]  # Gymnasium's type is wider than any use of it
        """The present picture, uint8 (144, 160, 3), in mode `rgb_array`; otherwise None."""
        return self.session.picture() if self.render_mode == "rgb_array" else None

    def set_starts(self, starts: Sequence[StartState]) -> None:
        """Set where episodes begin from the next reset on. An empty sequence means the game's true start."""
        self.session.set_starts(starts)

    def close(self) -> None:
        """End the emulator."""
        self.session.close()
