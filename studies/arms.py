"""The arms of a study: ways of training that differ in where the extra reward comes from.

Runs have curiosity (RND) by default, so every arm with a reward model has it too; `rnd` differs from those in the
reward model alone, and `none` from `rnd` in curiosity alone.
"""

from dataclasses import dataclass
from typing import Final, Literal

LabelSource = Literal["nobody", "judges", "chance", "truth"]


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of training. `teaching` says who labels the segments that the reward model learns from."""

    name: str
    title: str
    teaching: LabelSource = "nobody"
    curiosity: bool = False


ARMS: Final = {
    arm.name: arm
    for arm in (
        Arm("none", "PPO alone"),
        Arm("rnd", "PPO with RND curiosity", curiosity=True),
        Arm("judges", "PPO with RND, shaped by the judges' reward model", "judges", curiosity=True),
        Arm("random", "PPO with RND, shaped by a random reward model", "chance", curiosity=True),
        Arm("oracle", "PPO with RND, shaped by a model taught with the true milestones", "truth", curiosity=True),
    )
}
