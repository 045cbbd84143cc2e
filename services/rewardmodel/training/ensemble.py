"""The ensemble in torch: one batched product evaluates all M members, at a fifth of the cost of five small ones.

The architecture equals that of shared.rewardnet; a test compares the two.
"""

from typing import Final

import numpy as np
import torch
from torch import Tensor

from shared.rewardnet import HIDDEN, Floats, RewardWeights

Parameters = dict[str, Tensor]

PARAMETERS: Final = ("hidden1_weight", "hidden1_bias", "hidden2_weight", "hidden2_bias", "value_weight", "value_bias")
WEIGHTS: Final = tuple(name for name in PARAMETERS if name.endswith("_weight"))


def initial_parameters(members: int, seed: int, width: int) -> Parameters:
    """He-initialised parameters of M members for `width` inputs (arXiv:1502.01852)."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int, fan_in: int) -> Tensor:
        drawn: Tensor = torch.randn(shape, generator=generator) * (2.0 / fan_in) ** 0.5
        return drawn

    return {
        "hidden1_weight": normal(members, width, HIDDEN, fan_in=width),
        "hidden1_bias": torch.zeros(members, HIDDEN),
        "hidden2_weight": normal(members, HIDDEN, HIDDEN, fan_in=HIDDEN),
        "hidden2_bias": torch.zeros(members, HIDDEN),
        "value_weight": normal(members, HIDDEN, fan_in=HIDDEN * 10),  # small: scores start nearly equal
        "value_bias": torch.zeros(members),
    }


def monotone_parameters(parameters: Parameters) -> Parameters:
    """The parameters with all weights turned to the sign that `clamp_weights` demands, and small scores."""
    scale = {"hidden1_weight": 1.0, "hidden2_weight": 2.0 / HIDDEN**0.5, "value_weight": 2.0 / HIDDEN**0.5}
    turned = {name: tensor.clone() for name, tensor in parameters.items()}
    for name, sign in _signs().items():
        turned[name] = parameters[name].abs() * sign * scale[name]
    return turned


def clamp_weights(parameters: Parameters) -> None:
    """Set weights of the wrong sign to 0, in place: no score can then fall when an input rises.

    Half of the units of a layer rise with the inputs, the other half fall and count negatively. Rising ReLUs alone are
    convex and would pay nothing for the first event of a kind; falling ones add the concave part (Runje and
    Shankaranarayana 2023, arXiv:2205.11775).
    """
    with torch.no_grad():
        for name, sign in _signs().items():
            parameters[name].mul_(parameters[name] * sign > 0)


def _signs() -> Parameters:
    """The sign of each weight of a monotone network, by tensor; it broadcasts over members."""
    unit = torch.ones(HIDDEN)
    unit[HIDDEN // 2 :] = -1.0
    return {
        "hidden1_weight": unit,
        "hidden2_weight": unit[:, None] * unit,
        "value_weight": unit,
    }


def warm_start_parameters(weights: RewardWeights, mean: Floats, scale: Floats) -> Parameters:
    """Parameters that compute the same function as `weights` for inputs with another mean and scale (D,).

    A feature with scale 0 is constant in the new data: its effect moves into the bias.
    """
    ratio = np.where(scale > 0, weights.input_scale / np.where(scale > 0, scale, 1.0), 0.0)
    shift = ((mean - weights.input_mean) * weights.input_scale).astype(np.float32)
    bias = weights.hidden1_bias + np.einsum("d,mdh->mh", shift, weights.hidden1_weight)
    parameters = {name: torch.from_numpy(np.array(getattr(weights, name))) for name in PARAMETERS}
    parameters["hidden1_weight"] = torch.from_numpy((weights.hidden1_weight * ratio[None, :, None]).astype(np.float32))
    parameters["hidden1_bias"] = torch.from_numpy(bias.astype(np.float32))
    return parameters


def concatenate(ensembles: list[Parameters]) -> Parameters:
    """One ensemble with the members of several, in order."""
    return {name: torch.cat([ensemble[name] for ensemble in ensembles]) for name in PARAMETERS}


def forward(parameters: Parameters, inputs: Tensor) -> Tensor:
    """Scores (M, N) of standardised inputs (M, N, D)."""
    first = torch.baddbmm(parameters["hidden1_bias"][:, None], inputs, parameters["hidden1_weight"]).relu_()
    second = torch.baddbmm(parameters["hidden2_bias"][:, None], first, parameters["hidden2_weight"]).relu_()
    return torch.bmm(second, parameters["value_weight"][:, :, None])[:, :, 0] + parameters["value_bias"][:, None]


def to_reward_weights(
    parameters: Parameters, members: slice, mean: Floats, scale: Floats, observation: str
) -> RewardWeights:
    """The selected members as weights of the numpy network; their output is not yet standardised."""
    arrays = {name: parameters[name][members].detach().numpy().astype(np.float32).copy() for name in PARAMETERS}
    count = len(arrays["value_bias"])
    return RewardWeights(
        hidden1_weight=arrays["hidden1_weight"],
        hidden1_bias=arrays["hidden1_bias"],
        hidden2_weight=arrays["hidden2_weight"],
        hidden2_bias=arrays["hidden2_bias"],
        value_weight=arrays["value_weight"],
        value_bias=arrays["value_bias"],
        input_mean=mean,
        input_scale=scale,
        output_mean=np.zeros(count, np.float32),
        output_scale=np.ones(count, np.float32),
        observation=observation,
    )
