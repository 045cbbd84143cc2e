"""The arms of a study: ways of training that differ only in their additional reward.

Runs use curiosity (RND) by default, so every arm with a reward model uses it as well. `rnd` differs from those arms
only in the reward model, and `none` differs from `rnd` only in curiosity.
"""

from dataclasses import dataclass
from typing import Final, Literal

ShapingSource = Literal["none", "judges", "random", "oracle"]


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of training. `shaping` is the source of the reward model; `curiosity` switches RND on."""

    name: str
    title: str
    shaping: ShapingSource = "none"
    curiosity: bool = False


ARMS: Final = {
    arm.name: arm
    for arm in (
        Arm("none", "PPO alone"),
        Arm("rnd", "PPO with RND curiosity", curiosity=True),
        Arm("judges", "PPO with RND, shaped by the judges' reward model", "judges", curiosity=True),
        Arm("random", "PPO with RND, shaped by a random reward model", "random", curiosity=True),
        Arm(
            "oracle", "PPO with RND, shaped by a reward model trained on the true milestones", "oracle", curiosity=True
        ),
    )
}
