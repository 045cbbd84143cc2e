"""The arms of a study: ways of training that differ in one thing, where the extra reward comes from."""

from dataclasses import dataclass
from typing import Final, Literal

Teaching = Literal["nobody", "judges", "chance", "truth"]


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of training. `teaching` says who labels the segments that the reward model learns from."""

    name: str
    title: str
    teaching: Teaching = "nobody"
    curiosity: bool = False


ARMS: Final = {
    arm.name: arm
    for arm in (
        Arm("none", "PPO alone"),
        Arm("rnd", "PPO with RND curiosity", curiosity=True),
        Arm("judges", "PPO shaped by the judges' reward model", "judges"),
        Arm("random", "PPO shaped by a random reward model", "chance"),
        Arm("oracle", "PPO shaped by a reward model taught with the true milestones", "truth"),
    )
}
