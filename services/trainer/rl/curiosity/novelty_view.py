"""What curiosity sees: some features, or the newest picture alone (Burda et al. 2018)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared.contracts.learning.ppo import CuriosityView
from shared.game.observation import novelty


class NoveltyView:
    """Cuts curiosity's input from observations (N, *shape)."""

    def __init__(self, shape: tuple[int, ...], view: CuriosityView) -> None:
        columns = None if len(shape) > 1 else np.array(novelty.columns(view))
        self._columns = None if columns is None or shape == columns.shape else columns
        self.shape = (1, *shape[1:]) if columns is None else columns.shape

    def of(self, observations: NDArray[Any]) -> NDArray[Any]:
        """Curiosity's part of the observations, (N, *self.shape)."""
        if observations.ndim > 2:
            return observations[:, :1]
        return observations if self._columns is None else observations[:, self._columns]
