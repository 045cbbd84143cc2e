"""The reward model's network: architecture, file format and forward pass, shared by the trainer and the reward model.

An ensemble of small networks N -> 64 -> 64 -> 1 (ReLU) maps one state to one score per member; N is the width of what
it reads (WIDTHS). Scores are standardised: over the states the model was trained on, every member has mean 0 and
standard deviation 1.
This module never imports torch and never unpickles: a file is safetensors, and its shapes, types, values and
observation layout are checked before use.
"""

import json
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors import numpy as safetensors_numpy

from shared.errors import ContractError

Floats = NDArray[np.float32]

WIDTHS: Final[dict[str, int]] = {"obs/v1": 128, "counters/v1": 20}
"""Inputs of each view: the policy's observation (models older than 2026-11-23), or an episode's event counters."""

HIDDEN: Final = 64
MAX_MEMBERS: Final = 50
FORMAT: Final = "zelda-rewardnet/1"
MAX_FILE_BYTES: Final = 4_000_000  # 50 members need 2.5 MB; a larger file is refused unparsed
MAX_NORM: Final = 1_000.0  # of each tensor and member; trained ones stay below 50, larger ones amplify noise
MIN_DEVIATION: Final = 0.1  # limits the weight of a rarely set flag to ten times its value
FLAT: Final = 0.01  # deviation below which a member has no opinion; a larger value would flatten small real differences
PHI_LIMIT: Final = 5.0  # standard deviations; a score beyond it means an unknown state, which must not be rewarded more
CHUNK: Final = 4_096  # rows per pass: scratch memory stays below 20 MB for any batch


@dataclass(frozen=True)
class RewardWeights:
    """The parameters of a reward model with M members; all arrays are float32.

    `input_scale` is 1 / standard deviation, and 0 for a feature that is masked or constant in training: an unknown
    feature has no influence. `disagreement` is the mean over the training states of the members'
    standard deviation; `temperature` divides a score difference to give the log odds that a judge prefers it.
    """

    hidden1_weight: Floats  # (M, D, 64)
    hidden1_bias: Floats  # (M, 64)
    hidden2_weight: Floats  # (M, 64, 64)
    hidden2_bias: Floats  # (M, 64)
    value_weight: Floats  # (M, 64)
    value_bias: Floats  # (M,)
    input_mean: Floats  # (D,)
    input_scale: Floats  # (D,)
    output_mean: Floats  # (M,)
    output_scale: Floats  # (M,)
    observation: str = "obs/v1"
    temperature: float = 1.0
    disagreement: float = 0.0

    @property
    def members(self) -> int:
        """Size of the ensemble."""
        return int(self.value_bias.shape[0])


def conservative_potential(scores: Floats, conservatism: float, usual: float) -> Floats:
    """Phi (N,) of the members' scores (M, N): mean - k * (deviation - usual deviation), clipped to +-PHI_LIMIT."""
    members = len(scores)
    mean = np.add.reduce(scores, axis=0) / members
    spread = np.add.reduce(np.square(scores - mean), axis=0) / members
    phi: Floats = mean - conservatism * (np.sqrt(spread) - usual)
    np.clip(phi, -PHI_LIMIT, PHI_LIMIT, out=phi)
    return phi


def tensor_shapes(members: int, width: int) -> dict[str, tuple[int, ...]]:
    """The exact shape of every tensor of an ensemble."""
    return {
        "hidden1_weight": (members, width, HIDDEN),
        "hidden1_bias": (members, HIDDEN),
        "hidden2_weight": (members, HIDDEN, HIDDEN),
        "hidden2_bias": (members, HIDDEN),
        "value_weight": (members, HIDDEN),
        "value_bias": (members,),
        "input_mean": (width,),
        "input_scale": (width,),
        "output_mean": (members,),
        "output_scale": (members,),
    }


TENSORS: Final = tuple(tensor_shapes(1, 1))


def random_weights(members: int, seed: int, observation: str = "obs/v1") -> RewardWeights:
    """Untrained weights (He initialisation); also the `random reward model` of a study, after `standardised`."""
    rng, width = np.random.default_rng(seed), WIDTHS[observation]
    drawn: dict[str, Any] = {name: np.zeros(shape, np.float32) for name, shape in tensor_shapes(members, width).items()}
    for name, fan_in in (("hidden1_weight", width), ("hidden2_weight", HIDDEN), ("value_weight", HIDDEN)):
        drawn[name] = rng.normal(0.0, np.sqrt(2.0 / fan_in), drawn[name].shape).astype(np.float32)
    drawn["input_scale"] += 1.0
    drawn["output_scale"] += 1.0
    return RewardWeights(**drawn, observation=observation)


def zero_weights(members: int, observation: str = "obs/v1") -> RewardWeights:
    """Weights that score every observation 0; published when there are no data to learn from."""
    weights = random_weights(members, 0, observation)
    return replace(weights, value_weight=np.zeros_like(weights.value_weight))


def input_statistics(states: Floats, masked: NDArray[np.bool_] | None = None) -> tuple[Floats, Floats]:
    """Mean and scale of each feature over `states` (N, D); scale 0 where it is masked or constant."""
    mean = states.mean(axis=0, dtype=np.float64)
    deviation = states.std(axis=0, dtype=np.float64)
    scale = np.where(deviation > 1e-6, 1.0 / np.maximum(deviation, MIN_DEVIATION), 0.0)
    if masked is not None:
        scale = np.where(masked, 0.0, scale)
    return mean.astype(np.float32), scale.astype(np.float32)


def standardise(weights: RewardWeights, states: Floats) -> RewardWeights:
    """The same ensemble with output statistics taken over `states` (N, D): mean 0 and deviation 1 per member.

    A member with nearly constant scores stays flat: scaled to deviation 1, its noise would look like a preference.
    """
    bare = replace(
        weights, output_mean=np.zeros_like(weights.output_mean), output_scale=np.ones_like(weights.output_scale)
    )
    raw = RewardNet(bare).forward(states).astype(np.float64)
    scale = 1.0 / np.maximum(raw.std(axis=1), FLAT)
    scores = (raw - raw.mean(axis=1, keepdims=True)) * scale[:, None]
    return replace(
        weights,
        output_mean=raw.mean(axis=1).astype(np.float32),
        output_scale=scale.astype(np.float32),
        disagreement=float(scores.std(axis=0).mean()),
    )


def dump(weights: RewardWeights) -> bytes:
    """The ensemble as a safetensors file; raise ContractError if `load` would refuse it."""
    _check_tensors({name: getattr(weights, name) for name in TENSORS}, WIDTHS[weights.observation])
    metadata = {
        "format": FORMAT,
        "observation": weights.observation,
        "temperature": repr(weights.temperature),
        "disagreement": repr(weights.disagreement),
    }
    tensors = {name: np.ascontiguousarray(getattr(weights, name)) for name in TENSORS}
    return _ordered(bytes(safetensors_numpy.save(tensors, metadata)))


def _ordered(raw: bytes) -> bytes:
    """The file with a sorted header: the library orders metadata at random, but equal models must have one digest."""
    size = int.from_bytes(raw[:8], "little")
    header = json.dumps(json.loads(raw[8 : 8 + size]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + raw[8 + size :]


def load(raw: bytes, observation: str) -> RewardWeights:
    """Parse and check a file of `dump`. `observation` is the caller's view: a model of another one is refused.

    Raises ContractError with one sentence for anything that is not exactly a reward model of this format.
    """
    tensors, metadata = _parsed(raw)
    if metadata.get("observation") != observation:
        raise ContractError(
            f"reward model was trained on observation {metadata.get('observation')!r:.40}, "
            f"this run uses {observation!r:.40}: retrain it on this run's segments"
        )
    _check_tensors(tensors, WIDTHS[observation])
    return RewardWeights(
        **tensors,
        observation=observation,
        temperature=_number(metadata, "temperature", low=1e-3),
        disagreement=_number(metadata, "disagreement", low=0.0),
    )


def view_of(raw: bytes) -> str:
    """The view that a reward model's file was trained on, one of WIDTHS; ContractError if it names no such view."""
    view = _parsed(raw)[1].get("observation")
    if view not in WIDTHS:
        raise ContractError(f"reward model was trained on {view!r:.40}, this program knows {', '.join(WIDTHS)}")
    return str(view)


def _parsed(raw: bytes) -> tuple[dict[str, Any], dict[str, object]]:
    """Tensors and metadata of a file, both unchecked but for size and format."""
    if len(raw) > MAX_FILE_BYTES:
        raise ContractError(f"reward model of {len(raw)} bytes: the limit is {MAX_FILE_BYTES}")
    try:
        tensors: dict[str, Any] = safetensors_numpy.load(raw)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise ContractError(f"reward model is not a safetensors file: {error}"[:300]) from error
    metadata = _metadata(raw)
    if metadata.get("format") != FORMAT:
        raise ContractError(f"reward model has format {metadata.get('format')!r:.60}, this program reads {FORMAT!r}")
    return tensors, metadata


def _metadata(raw: bytes) -> dict[str, object]:
    # The parser has accepted the header: its length and its JSON are valid.
    size = int.from_bytes(raw[:8], "little")
    found = json.loads(raw[8 : 8 + size]).get("__metadata__")
    return found if isinstance(found, dict) else {}


def _number(metadata: dict[str, object], name: str, low: float) -> float:
    try:
        value = float(str(metadata.get(name)))
    except ValueError:
        value = float("nan")
    if not low <= value <= MAX_NORM:  # also false for NaN
        raise ContractError(f"reward model has {name} {metadata.get(name)!r:.40}: expected {low} to {MAX_NORM}")
    return value


def _check_tensors(tensors: dict[str, Any], width: int) -> None:
    if set(tensors) != set(TENSORS):
        raise ContractError(f"reward model has tensors {sorted(tensors)!s:.200}, expected {sorted(TENSORS)}")
    bias = tensors["value_bias"]
    if bias.ndim != 1 or not 1 <= bias.shape[0] <= MAX_MEMBERS:
        raise ContractError(f"reward model has value_bias of shape {bias.shape}, expected 1 to {MAX_MEMBERS} members")
    for name, shape in tensor_shapes(bias.shape[0], width).items():
        _check_tensor(name, tensors[name], shape)
    if (tensors["input_scale"] < 0).any() or (tensors["output_scale"] <= 0).any():
        raise ContractError("reward model has a scale that is not positive: the file is damaged, train again")


def _check_tensor(name: str, tensor: NDArray[Any], shape: tuple[int, ...]) -> None:
    if tensor.shape != shape or tensor.dtype != np.float32:
        raise ContractError(f"reward model has {name} {tensor.dtype}{tensor.shape}, expected float32{shape}")
    if not np.isfinite(tensor).all():
        raise ContractError(f"reward model has values in {name} that are not finite: train again")
    flat = tensor.reshape(shape[0], -1).astype(np.float64)
    if np.linalg.norm(flat, axis=1).max() > MAX_NORM:
        raise ContractError(
            f"reward model has a norm above {MAX_NORM} in {name}: the training diverged or the file is forged"
        )


class _Scratch:
    """Buffers for one batch size: a step allocates nothing."""

    def __init__(self, rows: int, members: int) -> None:
        self.first = np.empty((rows, members * HIDDEN), np.float32)
        self.by_member = self.first.reshape(rows, members, HIDDEN).transpose(1, 0, 2)
        self.second = np.empty((members, rows, HIDDEN), np.float32)
        self.value = np.empty((members, rows, 1), np.float32)


class RewardNet:
    """The forward pass in numpy. Not thread-safe: it owns scratch buffers; use one instance per thread."""

    def __init__(self, weights: RewardWeights) -> None:
        """Fold both standardisations into the first and last layer: they cost nothing per step."""
        self.weights = weights
        members = weights.members
        scaled = weights.hidden1_weight * weights.input_scale[None, :, None]
        shift = np.einsum("d,mdh->mh", weights.input_mean, scaled)
        self._weight1 = np.ascontiguousarray(scaled.transpose(1, 0, 2).reshape(-1, members * HIDDEN))
        self._bias1 = (weights.hidden1_bias - shift).reshape(-1).astype(np.float32)
        self._weight2 = weights.hidden2_weight
        self._bias2 = weights.hidden2_bias[:, None, :]
        self._weight3 = (weights.value_weight * weights.output_scale[:, None])[:, :, None]
        self._bias3 = ((weights.value_bias - weights.output_mean) * weights.output_scale)[:, None]
        self._scratch: dict[int, _Scratch] = {}

    @classmethod
    def from_bytes(cls, raw: bytes, observation: str) -> Self:
        """Load, check and prepare a reward model; raise ContractError as `load` does."""
        return cls(load(raw, observation))

    def forward(self, observations: Floats, out: Floats | None = None) -> Floats:
        """Standardised scores (M, N) of `observations` (N, D) float32, written to `out` if it is given."""
        rows = len(observations)
        result = np.empty((self.weights.members, rows), np.float32) if out is None else out
        if rows <= CHUNK:
            self._forward(observations, result)
        else:
            for start in range(0, rows, CHUNK):
                self._forward(observations[start : start + CHUNK], result[:, start : start + CHUNK])
        return result

    def _forward(self, observations: Floats, result: Floats) -> None:
        scratch = self._buffers(len(observations))
        first, second, value = scratch.first, scratch.second, scratch.value
        np.matmul(observations, self._weight1, out=first)
        np.add(first, self._bias1, out=first)
        np.maximum(first, 0.0, out=first)
        np.matmul(scratch.by_member, self._weight2, out=second)
        np.add(second, self._bias2, out=second)
        np.maximum(second, 0.0, out=second)
        np.matmul(second, self._weight3, out=value)
        np.add(value[:, :, 0], self._bias3, out=result)

    def _buffers(self, rows: int) -> _Scratch:
        scratch = self._scratch.get(rows)
        if scratch is None:
            if len(self._scratch) >= 8:  # batch sizes hardly vary; rare ones must not accumulate
                self._scratch.clear()
            scratch = self._scratch[rows] = _Scratch(rows, self.weights.members)
        return scratch
