"""Minibatches of pairs for all M members together, as tensors; each member has its own segments and pairs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from services.rewardmodel.domain.preferences import Ints, PairBlocks, PreferencePairs, Reals


@dataclass(frozen=True)
class PairBatch:
    """Rows (M, B) of the data, and pairs (M, P) as positions among them; weight 0 is padding."""

    rows: Tensor
    first: Tensor
    second: Tensor
    target: Tensor
    weight: Tensor

    def loss(self, scores: Tensor) -> Tensor:
        """Bradley-Terry loss (M,) of segment scores (M, B); 0 for a member without pairs.

        Cross-entropy of the soft labels with sigmoid(score difference): Bradley and Terry 1952; for segments of
        trajectories, Christiano et al. 2017, arXiv:1706.03741.
        """
        margin = scores.gather(1, self.first) - scores.gather(1, self.second)
        entropy = torch.nn.functional.softplus(margin) - self.target * margin
        return (self.weight * entropy).sum(1) / self.weight.sum(1).clamp_min(1e-9)


class BatchStream:
    """Endless minibatches. Each member passes over its own blocks, in a new random order per pass."""

    def __init__(self, blocks: Sequence[PairBlocks | None], seed: int) -> None:
        """Takes one `PairBlocks` per member; None (nothing to learn from) becomes blocks of weight 0."""
        present = [block for block in blocks if block is not None]
        self.length = max((len(block.rows) for block in present), default=1)
        size = max((block.rows.shape[1] for block in present), default=2)
        most_pairs = max((block.first.shape[1] for block in present), default=1)
        self._rows = torch.stack([_rows(block, self.length, size) for block in blocks])
        self._parts = {
            name: torch.stack([_part(block, name, self.length, most_pairs) for block in blocks])
            for name in ("first", "second", "target", "weight")
        }
        self._members = torch.arange(len(blocks))
        self._rng = torch.Generator().manual_seed(seed)
        self._order = torch.zeros(len(blocks), 0, dtype=torch.int64)

    def next(self) -> PairBatch:
        """The next minibatch."""
        if not self._order.shape[1]:
            draws = torch.rand(len(self._members), self.length, generator=self._rng)
            self._order = draws.argsort(dim=1)
        chosen, self._order = self._order[:, 0], self._order[:, 1:]
        parts = {name: part[self._members, chosen] for name, part in self._parts.items()}
        return PairBatch(self._rows[self._members, chosen], **parts)


def _rows(block: PairBlocks | None, length: int, size: int) -> Tensor:
    """The block's rows (length, size); shorter blocks wrap around."""
    if block is None:
        return torch.zeros(length, size, dtype=torch.int64)
    padded = np.pad(block.rows, ((0, 0), (0, size - block.rows.shape[1])), mode="wrap")
    return torch.from_numpy(padded[np.arange(length) % len(padded)])


def _part(block: PairBlocks | None, name: str, length: int, most_pairs: int) -> Tensor:
    """One array of the block's pairs (length, most_pairs), padded with 0."""
    is_index = name in ("first", "second")
    if block is None:
        return torch.zeros(length, most_pairs, dtype=torch.int64 if is_index else torch.float32)
    values: Ints | Reals = getattr(block, name)
    padded = np.pad(values, ((0, 0), (0, most_pairs - values.shape[1])))
    return torch.from_numpy(padded[np.arange(length) % len(padded)].astype(np.int64 if is_index else np.float32))


def validation_batch(pairs: Sequence[PreferencePairs]) -> PairBatch:
    """One batch of validation pairs: one `PreferencePairs` of data rows per member; empty ones get weight 0."""
    rows = [np.unique(np.concatenate([p.first, p.second, [0]])) for p in pairs]
    size, most_pairs = max(len(r) for r in rows), max(1, *(len(p) for p in pairs))

    def stack(values: Sequence[Ints] | Sequence[Reals], dtype: type) -> Tensor:
        return torch.from_numpy(np.stack([np.pad(v, (0, most_pairs - len(v))) for v in values]).astype(dtype))

    return PairBatch(
        rows=torch.from_numpy(np.stack([np.pad(r, (0, size - len(r))) for r in rows])),
        first=stack([np.searchsorted(r, p.first) for r, p in zip(rows, pairs, strict=True)], np.int64),
        second=stack([np.searchsorted(r, p.second) for r, p in zip(rows, pairs, strict=True)], np.int64),
        target=stack([p.target for p in pairs], np.float32),
        weight=stack([p.weight for p in pairs], np.float32),
    )
