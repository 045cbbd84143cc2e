"""Serialises the ensemble as a plain torch state dict (`rm.pt`) for other tools. This project never loads it."""

import io

import torch

from shared.rewardnet import TENSORS, RewardWeights


def serialise_state_dict(weights: RewardWeights) -> bytes:
    """The bytes of `torch.save` of name -> tensor; loadable with weights_only=True."""
    buffer = io.BytesIO()
    torch.save({name: torch.from_numpy(getattr(weights, name).copy()) for name in TENSORS}, buffer)
    return buffer.getvalue()
