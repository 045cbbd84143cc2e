"""The forward pass equals the plain formula, and only valid files of this format load."""

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save

from shared.errors import ContractError
from shared.rewardnet import (
    FORMAT,
    MAX_FILE_BYTES,
    TENSORS,
    Floats,
    RewardNet,
    RewardWeights,
    dump,
    input_statistics,
    load,
    random_weights,
    standardise,
    zero_weights,
)


def some_states(rows: int = 500) -> Floats:
    return np.random.default_rng(0).uniform(-1, 1, (rows, 128)).astype(np.float32)


def some_weights() -> RewardWeights:
    mean, scale = input_statistics(some_states())
    return standardise(
        replace(random_weights(5, 3), input_mean=mean, input_scale=scale, temperature=0.7), some_states()
    )


def formula(weights: RewardWeights, member: int, states: Floats) -> Floats:
    x = (states - weights.input_mean) * weights.input_scale
    x = np.maximum(x @ weights.hidden1_weight[member] + weights.hidden1_bias[member], 0)
    x = np.maximum(x @ weights.hidden2_weight[member] + weights.hidden2_bias[member], 0)
    value = x @ weights.value_weight[member] + weights.value_bias[member]
    score: Floats = (value - weights.output_mean[member]) * weights.output_scale[member]
    return score


@pytest.mark.parametrize("rows", [1, 16, 500, 5_000])
def test_the_optimised_forward_pass_equals_the_plain_formula(rows: int) -> None:
    weights, states = some_weights(), some_states(rows)
    scores = RewardNet(weights).forward(states)
    for member in range(5):
        assert np.abs(scores[member] - formula(weights, member, states)).max() < 1e-4


def test_a_nearly_constant_member_stays_flat_and_is_serialisable() -> None:
    bare = random_weights(5, 3)
    numb = replace(bare, value_weight=bare.value_weight * 1e-6)
    flat = standardise(numb, some_states())
    assert RewardNet(flat).forward(some_states()).std(axis=1).max() < 0.01
    assert len(dump(flat)) > 0


def test_scores_are_standardised_over_the_training_states() -> None:
    scores = RewardNet(some_weights()).forward(some_states())
    assert np.abs(scores.mean(axis=1)).max() < 1e-4
    assert np.abs(scores.std(axis=1) - 1).max() < 1e-3


def test_saving_and_loading_preserves_the_weights() -> None:
    weights = some_weights()
    loaded = load(dump(weights), "obs/v1")
    assert all(np.array_equal(getattr(loaded, name), getattr(weights, name)) for name in TENSORS)
    assert (loaded.temperature, loaded.disagreement) == (weights.temperature, weights.disagreement)


def test_equal_models_give_equal_files() -> None:
    assert len({dump(some_weights()) for _ in range(8)}) == 1


def test_scores_are_written_to_a_given_buffer() -> None:
    out = np.zeros((5, 3), np.float32)
    assert RewardNet(some_weights()).forward(some_states(3), out) is out
    assert np.abs(out).max() > 0


def test_masked_and_constant_features_have_no_influence() -> None:
    seen = some_states()
    seen[:, 7] = 0.25
    mean, scale = input_statistics(seen, np.arange(128) == 3)
    net = RewardNet(replace(random_weights(2, 0), input_mean=mean, input_scale=scale))
    other = seen.copy()
    other[:, [3, 7]] = 1.0
    assert np.array_equal(net.forward(seen), net.forward(other))


def test_a_neutral_model_scores_every_state_zero() -> None:
    assert not RewardNet.from_bytes(dump(zero_weights(5)), "obs/v1").forward(some_states()).any()


def forged(**changes: object) -> bytes:
    """A file with changed tensors or metadata."""
    weights = some_weights()
    tensors = {name: getattr(weights, name) for name in TENSORS}
    metadata = {"format": FORMAT, "observation": "obs/v1", "temperature": "1.0", "disagreement": "0.1"}
    for name, change in changes.items():
        target = metadata if name in metadata else tensors
        if change is None:
            del target[name]
        else:
            target[name] = change  # type: ignore[assignment]
    return save(tensors, metadata)


def with_value(name: str, value: float) -> bytes:
    tensor = getattr(some_weights(), name).copy()
    tensor.flat[0] = value
    return forged(**{name: tensor})


def endless_header() -> bytes:
    return (2**62).to_bytes(8, "little") + b"{" * 100


def overlapping_tensors() -> bytes:
    entry = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    header = json.dumps(dict.fromkeys(TENSORS, entry)).encode()
    return len(header).to_bytes(8, "little") + header + b"\0" * 4


CORPUS: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty file": (lambda: b"", "not a safetensors"),
    "pickle": (lambda: b"\x80\x04cos\nsystem\n(S'true'\ntR.", "not a safetensors"),
    "zip, as torch writes it": (lambda: b"PK\x03\x04" + b"\0" * 200, "not a safetensors"),
    "cut in the middle": (lambda: dump(some_weights())[:10_000], "not a safetensors"),
    "header longer than the file": (endless_header, "not a safetensors"),
    "tensors that overlap": (overlapping_tensors, "not a safetensors"),
    "oversized": (lambda: b"\0" * (MAX_FILE_BYTES + 1), "limit"),
    "format missing": (lambda: forged(format=None), "format"),
    "other format": (lambda: forged(format="zelda-rewardnet/2"), "format"),
    "other observation": (lambda: forged(observation="pixels/v1"), "trained on observation"),
    "temperature not a number": (lambda: forged(temperature="nan"), "temperature"),
    "temperature zero": (lambda: forged(temperature="0"), "temperature"),
    "temperature text": (lambda: forged(temperature="__import__('os')"), "temperature"),
    "disagreement negative": (lambda: forged(disagreement="-1"), "disagreement"),
    "tensor missing": (lambda: forged(hidden1_bias=None), "tensors"),
    "tensor too many": (lambda: forged(extra=np.zeros(3, np.float32)), "tensors"),
    "wrong shape": (lambda: forged(hidden2_weight=np.zeros((5, 64, 63), np.float32)), "hidden2_weight"),
    "scalar bias": (lambda: forged(value_bias=np.zeros((), np.float32)), "value_bias"),
    "no members": (lambda: forged(value_bias=np.zeros(0, np.float32)), "members"),
    "too many members": (lambda: forged(value_bias=np.zeros(51, np.float32)), "members"),
    "double precision": (lambda: forged(input_mean=np.zeros(128)), "float64"),
    "NaN": (lambda: with_value("hidden1_weight", float("nan")), "not finite"),
    "infinite": (lambda: with_value("value_bias", float("inf")), "not finite"),
    "huge weight": (lambda: with_value("hidden2_weight", 1e9), "norm"),
    "negative scale": (lambda: with_value("input_scale", -1.0), "scale"),
    "zero output scale": (lambda: with_value("output_scale", 0.0), "scale"),
}


@pytest.mark.parametrize("name", CORPUS)
def test_a_malicious_or_damaged_file_is_rejected_in_one_sentence(name: str) -> None:
    make, reason = CORPUS[name]
    with pytest.raises(ContractError, match=reason) as refused:
        load(make(), "obs/v1")
    assert "\n" not in str(refused.value)


def test_a_flipped_byte_is_rejected_or_gives_finite_scores() -> None:
    raw, states = dump(some_weights()), some_states(4)
    rng = np.random.default_rng(5)
    for position in [*range(0, 400, 7), *rng.integers(0, len(raw), 150)]:
        damaged = bytearray(raw)
        damaged[position] ^= int(rng.integers(1, 256))
        try:
            net = RewardNet.from_bytes(bytes(damaged), "obs/v1")
        except ContractError:
            continue
        assert np.isfinite(net.forward(states)).all()


def test_invalid_weights_are_not_saved() -> None:
    with pytest.raises(ContractError, match="not finite"):
        dump(replace(some_weights(), value_bias=np.full(5, np.nan, np.float32)))
