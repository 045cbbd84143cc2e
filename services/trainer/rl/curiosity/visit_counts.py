"""Curiosity by counting: a state pays 1/sqrt(visits of its cell) (Strehl and Littman 2008; hashed: Tang et al. 2017).

Of features a cell is `cells/v1` (shared/game/observation/cells.py). Of pictures it is the newest one, small and with
few greys (Ecoffet et al. 2021).
"""

from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from shared.game.observation import cells
from shared.game.observation.layout import INDEX

PLACES_BITS: Final = 18
"""Two to this power is the size of the table. Cells that share a place count together, so a few look less rare."""
BLOCK: Final = 8  # pixels of a picture that become one
GREYS: Final = 8
MULTIPLIERS_SEED: Final = 20_261_123  # fixed: a checkpoint's counts are valid only with the same hash
MIXER: Final = np.uint64(0xBF58476D1CE4E5B9)  # of splitmix64 (Steele et al. 2014)


class VisitCounts(nn.Module):
    """The table of visits. It is a buffer of the module, so checkpoints hold it; it never travels to env runners."""

    counts: Tensor

    def __init__(self, shape: tuple[int, ...]) -> None:
        """`shape` is that of one observation."""
        super().__init__()
        self.register_buffer("counts", torch.zeros(2**PLACES_BITS, dtype=torch.int32))
        parts = len(cells.COLUMNS) if len(shape) == 1 else -(-shape[1] // BLOCK) * -(-shape[2] // BLOCK)
        drawn = np.random.default_rng(MULTIPLIERS_SEED).integers(0, 2**63, parts, dtype=np.uint64)
        self._multipliers = drawn * np.uint64(2) + np.uint64(1)

    def bonus(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """Count a visit of every observation (N, *shape), then return what each pays, (N,), in (0, 1]."""
        places = torch.from_numpy(self._places(_parts(observations)))
        self.counts += torch.bincount(places, minlength=len(self.counts)).to(torch.int32)
        found: NDArray[np.float32] = self.counts[places].to(torch.float32).rsqrt().numpy()
        return found

    @property
    def cells(self) -> int:
        """Number of cells seen so far."""
        return int(torch.count_nonzero(self.counts))

    def _places(self, parts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The table's place of each cell: a multiplicative hash of its parts (N, P)."""
        mixed = (parts.astype(np.uint64) * self._multipliers).sum(1, dtype=np.uint64)
        mixed = (mixed ^ (mixed >> np.uint64(29))) * MIXER
        places: NDArray[np.int64] = (mixed >> np.uint64(64 - PLACES_BITS)).astype(np.int64)
        return places


_COLUMNS: Final = np.array(cells.COLUMNS)
_RESOLUTION: Final = np.array([*cells.RESOLUTION.values()], np.float32)
_BUTTONS: Final = [INDEX[name] for name in cells.BUTTONS]
_AIMED: Final = np.isin(_COLUMNS, [INDEX[name] for name in cells.AIMED])


def _parts(observations: NDArray[Any]) -> NDArray[np.int64]:
    """The whole numbers that make up the cell of each observation, (N, P)."""
    if observations.ndim == 2:
        found: NDArray[np.int64] = np.floor(observations[:, _COLUMNS] * _RESOLUTION + 1e-3).astype(np.int64)
        pressed = (observations[:, _BUTTONS] > 0).any(1)
        found[np.ix_(~pressed, _AIMED)] = 0
        return found
    newest = observations[:, 0].astype(np.float32)
    height, width = (-size % BLOCK for size in newest.shape[1:])
    padded = np.pad(newest, ((0, 0), (0, height), (0, width)), mode="edge")
    blocks = padded.reshape(len(padded), padded.shape[1] // BLOCK, BLOCK, padded.shape[2] // BLOCK, BLOCK)
    greys: NDArray[np.int64] = (blocks.mean((2, 4)) * (GREYS / 256)).astype(np.int64)
    return greys.reshape(len(padded), -1)
