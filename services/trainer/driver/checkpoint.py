"""A checkpoint is one zip without pickle: tensors as safetensors, everything else as JSON.

It holds all that the driver carries from one iteration to the next: policy and critics, RND pair, optimiser, running
statistics, random generators, progress and the epoch's episodes so far. The games are not in it: a session restored
in mid-epoch begins new episodes, so it does not repeat what the old session would have done.
"""

import io
import json
import random
import zipfile
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from shared.errors import Permanent

FORMAT = 1
STATE = "state.json"
WEIGHTS = "weights.safetensors"
OPTIMIZER = "optimizer.safetensors"
SIZE_LIMIT = 1 << 30  # a zip that unpacks to more than 1 GiB is not ours


@dataclass(slots=True)
class Checkpoint:
    """The parts of a checkpoint in memory. `state` is plain JSON data."""

    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    state: dict[str, Any] = field(default_factory=dict)


def pack(checkpoint: Checkpoint) -> bytes:
    """The zip's bytes. The same checkpoint gives the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        members = {
            STATE: json.dumps({"format": FORMAT, **checkpoint.state}).encode(),
            WEIGHTS: save({name: tensor.contiguous() for name, tensor in checkpoint.weights.items()}),
            OPTIMIZER: save({name: tensor.contiguous() for name, tensor in checkpoint.optimizer.items()}),
        }
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)  # ZipInfo without a date: bytes must not depend on the clock
    return buffer.getvalue()


def unpack(data: bytes) -> Checkpoint:
    """Parse bytes that `pack` made, or raise Permanent with a sentence."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(member.file_size for member in archive.infolist()) > SIZE_LIMIT:
                raise Permanent(
                    f"checkpoint unpacks to more than {SIZE_LIMIT} bytes: restore the object or start a new run"
                )
            state = json.loads(archive.read(STATE))
            weights, optimizer = load(archive.read(WEIGHTS)), load(archive.read(OPTIMIZER))
    except (zipfile.BadZipFile, SafetensorError, KeyError, ValueError) as error:
        raise Permanent(f"checkpoint unreadable ({error}): restore the object or start a new run") from error
    if state.get("format") != FORMAT:
        raise Permanent(
            f"checkpoint has format {state.get('format')!r}, this version reads {FORMAT}: use the version that wrote it"
        )
    return Checkpoint(weights, optimizer, state)


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Adam's state, named `{parameter index}/{field}`."""
    state = optimizer.state_dict()["state"]
    return {f"{index}/{name}": value for index, fields in state.items() for name, value in fields.items()}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` returned; learning rate and groups stay as configured."""
    fields: dict[int, dict[str, Tensor]] = {}
    for path, tensor in tensors.items():
        index, name = path.split("/")
        fields.setdefault(int(index), {})[name] = tensor
    optimizer.load_state_dict({"state": fields, "param_groups": optimizer.state_dict()["param_groups"]})


def random_state() -> dict[str, Any]:
    """State of the three process-wide random generators (random, NumPy, torch), as plain data."""
    name, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)
    version, words, gauss_next = random.getstate()
    return {
        "python": [version, list(words), gauss_next],
        "numpy": [name, np.asarray(keys).tolist(), position, has_gauss, gauss],
        "torch": torch.get_rng_state().tolist(),
    }


def restore_random(state: dict[str, Any]) -> None:
    """Put back what `random_state` returned."""
    version, words, gauss_next = state["python"]
    random.setstate((version, tuple(words), gauss_next))
    name, keys, position, has_gauss, gauss = state["numpy"]
    np.random.set_state((name, np.asarray(keys, np.uint32), position, has_gauss, gauss))
    torch.set_rng_state(torch.tensor(state["torch"], dtype=torch.uint8))
