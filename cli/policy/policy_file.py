"""A trained policy as one NumPy file without pickle, and its forward pass.

The file holds `weight_0`, `bias_0`, `weight_1`, ... (float32) of a network with tanh between its layers, and
`metadata`: a JSON text that names the features of the observation and the action of each output. A policy with memory
also holds `gru_...`, the weights of a gated recurrent unit before the last layer.
"""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cli.policy.gated_unit import GatedUnit
from services.trainer.options.option_sets import choice_names
from shared.errors import Permanent
from shared.game.observation import with_guidance
from shared.game.observation.versions import FEATURES

Floats = NDArray[np.float32]
FORMAT: Final = "zelda-policy/1"
FORMAT_WITH_MEMORY: Final = "zelda-policy/2"
EXAMPLE: Final = """\
import json
import numpy as np
policy = np.load("policy.npz")  # plain arrays: nothing is unpickled
about = json.loads(str(policy["metadata"]))
x = np.zeros(len(about["features"]), np.float32)  # the observation, one value per feature
for n in range(about["layers"]):
    x = policy[f"weight_{n}"] @ x + policy[f"bias_{n}"]
    if n < about["layers"] - 1:
        x = np.tanh(x)
print(about["actions"][int(x.argmax())])  # or sample from the softmax of x, as training does
"""


EXAMPLE_WITH_MEMORY: Final = """\
import json
import numpy as np
policy = np.load("policy.npz")  # plain arrays: nothing is unpickled
about = json.loads(str(policy["metadata"]))
memory = np.zeros(about["memory_size"], np.float32)  # at the start of an episode
for step in range(3):
    x = np.zeros(len(about["features"]), np.float32)  # the observation, one value per feature
    for n in range(about["layers"] - 1):
        x = np.tanh(policy[f"weight_{n}"] @ x + policy[f"bias_{n}"])
    seen = np.split(policy["gru_input_weight"] @ x + policy["gru_input_bias"], 3)
    kept = np.split(policy["gru_memory_weight"] @ memory + policy["gru_memory_bias"], 3)
    reset, update = (1 / (1 + np.exp(-seen[n] - kept[n])) for n in (0, 1))
    memory = (1 - update) * np.tanh(seen[2] + reset * kept[2]) + update * memory
    last = about["layers"] - 1
    x = policy[f"weight_{last}"] @ np.concatenate((x, memory)) + policy[f"bias_{last}"]
    print(about["actions"][int(x.argmax())])  # or sample from the softmax of x, as training does
"""


@dataclass(frozen=True, slots=True)
class Policy:
    """The layers of a policy: (weight (out, in), bias (out,)) each, and what they mean; `unit` is before the last."""

    layers: tuple[tuple[Floats, Floats], ...]
    about: Mapping[str, Any]
    unit: GatedUnit | None = None

    def first_memory(self) -> Floats:
        """The memory (M,) at the start of an episode; M is 0 without memory."""
        return np.zeros(self.unit.size if self.unit is not None else 0, np.float32)

    def step(self, observation: Floats, memory: Floats) -> tuple[Floats, Floats]:
        """The value of each action for one observation (D,), before the softmax, and the next memory (M,)."""
        x = observation
        for weight, bias in self.layers[:-1]:
            x = np.tanh(weight @ x + bias)
        if self.unit is not None:
            memory = self.unit.step(x, memory)
            x = np.concatenate((x, memory))
        weight, bias = self.layers[-1]
        return weight @ x + bias, memory

    @property
    def example(self) -> str:
        """A program that uses the file."""
        return EXAMPLE if self.unit is None else EXAMPLE_WITH_MEMORY

    def to_bytes(self) -> bytes:
        """The file."""
        arrays: dict[str, Any] = {"metadata": np.array(json.dumps(dict(self.about)))}
        for number, (weight, bias) in enumerate(self.layers):
            arrays |= {f"weight_{number}": weight, f"bias_{number}": bias}
        if self.unit is not None:
            arrays |= self.unit.arrays()
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        return buffer.getvalue()


def policy_from(tensors: Mapping[str, Floats], about: Mapping[str, Any]) -> Policy:
    """The policy among the tensors of a checkpoint (`pi.0.weight`, ...). Permanent for a policy that sees pictures."""
    features = FEATURES.get(about["observation"])
    if features is not None and about.get("guided"):
        features = (*features, *with_guidance.NAMES)
    if features is None:
        known = ", ".join(FEATURES)
        raise Permanent(f"this policy sees {about['observation']}: only policies on {known} can be exported or played")
    unit = GatedUnit.of(tensors) if "pi.head.weight" in tensors else None
    layers = _layers(tensors, "pi." if unit is None else "pi.front.")
    if unit is not None:
        layers = (*layers, (tensors["pi.head.weight"], tensors["pi.head.bias"]))
    meaning = {
        "format": FORMAT if unit is None else FORMAT_WITH_MEMORY,
        "memory_size": 0 if unit is None else unit.size,
        "layers": len(layers),
        "activation": "tanh",
        "features": list(features),
        "actions": list(choice_names(about.get("options", "none"))),
    }
    return Policy(layers, {**meaning, **about}, unit)


def _layers(tensors: Mapping[str, Floats], prefix: str) -> tuple[tuple[Floats, Floats], ...]:
    """The linear layers below `prefix`, in their order."""
    numbers = sorted(
        int(name.split(".")[-2]) for name in tensors if name.startswith(prefix) and name.endswith("weight")
    )
    return tuple((tensors[f"{prefix}{number}.weight"], tensors[f"{prefix}{number}.bias"]) for number in numbers)
