"""The Gymnasium spaces of observations and actions.

8 actions: wait, up, down, left, right, A, B, START. A direction is held for `frame_skip` frames, the other buttons are
released halfway (`actions/v2`).
"""

import numpy as np
from gymnasium import spaces

from services.trainer.env.pixels import PixelEncoder
from services.trainer.options.option_sets import choice_names
from shared.contracts.run import OptionsName
from shared.game.observation import with_guidance
from shared.game.observation.versions import FEATURES


def observation_space(name: str, *, guided: bool = False) -> spaces.Box:
    """The space of an observation layout; with `guided`, of one that also shows a suggestion."""
    if name in FEATURES:
        return spaces.Box(-1.0, 1.0, (len(FEATURES[name]) + guided * with_guidance.SIZE,), np.float32)
    return spaces.Box(0, 255, PixelEncoder.shape, np.uint8)


def action_space(options: OptionsName = "none") -> "spaces.Discrete[np.int64]":
    """The space of the eight actions; with options, of those and the options."""
    return spaces.Discrete(len(choice_names(options)))
