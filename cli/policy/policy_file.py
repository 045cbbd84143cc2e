"""A trained policy as one NumPy file without pickle, and its forward pass.

The file holds `weight_0`, `bias_0`, `weight_1`, ... (float32) of a network with tanh between its layers, and
`metadata`:
a JSON text that names the features of the observation and the action of each output.
"""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from services.trainer.options.choices import NAMES
from shared.errors import Permanent
from shared.game.decoding.names import ACTIONS
from shared.game.observation import counters, layout, with_counters, with_guidance

Floats = NDArray[np.float32]
FEATURES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        layout.VERSION: tuple(layout.INDEX),
        # Some counters have the name of a feature.
        with_counters.VERSION: (*layout.INDEX, *(f"counter_{name}" for name in counters.NAMES)),
    }
)
"""Names of the values that a policy sees, by the version of its observation."""
FORMAT: Final = "zelda-policy/1"
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


@dataclass(frozen=True, slots=True)
class Policy:
    """The layers of a policy: (weight (out, in), bias (out,)) each, and what they mean."""

    layers: tuple[tuple[Floats, Floats], ...]
    about: Mapping[str, Any]

    def logits(self, observation: Floats) -> Floats:
        """The value of each action for one observation (D,), before the softmax; shape (number of actions,)."""
        x = observation
        for weight, bias in self.layers[:-1]:
            x = np.tanh(weight @ x + bias)
        weight, bias = self.layers[-1]
        result: Floats = weight @ x + bias
        return result

    def to_bytes(self) -> bytes:
        """The file."""
        arrays: dict[str, Any] = {"metadata": np.array(json.dumps(dict(self.about)))}
        for number, (weight, bias) in enumerate(self.layers):
            arrays |= {f"weight_{number}": weight, f"bias_{number}": bias}
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        return buffer.getvalue()


def policy_from(tensors: Mapping[str, Floats], about: Mapping[str, Any]) -> Policy:
    """The policy among the tensors of a checkpoint (`pi.0.weight`, ...). Permanent for a policy that sees pictures."""
    features = FEATURES.get(about["observation"])
    if features is not None and about.get("guided"):
        features = (*features, *with_guidance.NAMES)
    if features is None:
        known = " and ".join(FEATURES)
        raise Permanent(f"this policy sees {about['observation']}: only policies on {known} can be exported or played")
    numbers = sorted({int(name.split(".")[1]) for name in tensors if name.startswith("pi.")})
    layers = tuple((tensors[f"pi.{number}.weight"], tensors[f"pi.{number}.bias"]) for number in numbers)
    meaning = {
        "format": FORMAT,
        "layers": len(layers),
        "activation": "tanh",
        "features": list(features),
        "actions": list(ACTIONS if about.get("options", "none") == "none" else NAMES),
    }
    return Policy(layers, {**meaning, **about})
