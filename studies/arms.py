"""The arms of a study: ways of training that differ only in their additional reward.

Runs use curiosity (RND) by default, so every arm but `none` uses it as well. `rnd` differs from the arms below it only
in what they add, and `none` differs from `rnd` only in curiosity.
"""

from dataclasses import dataclass
from typing import Final, Literal

ShapingSource = Literal["none", "judges", "shuffled", "random", "oracle"]


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of training.

    `shaping` is the source of the reward model, `curiosity` switches RND on, `rewards` replaces the study's reward
    profile, and `direct` pays the judge's score of each segment without a reward model.
    """

    name: str
    title: str
    shaping: ShapingSource = "none"
    curiosity: bool = True
    rewards: str | None = None
    direct: bool = False


ARMS: Final = {
    arm.name: arm
    for arm in (
        Arm("none", "PPO alone", curiosity=False),
        Arm("rnd", "PPO with RND curiosity"),
        Arm("events", "PPO with RND and a hand-written profile of events", rewards="events"),
        Arm("rules-direct", "PPO with RND, paid the judge's score of each segment", direct=True),
        Arm("judges", "PPO with RND, shaped by the judges' reward model", "judges"),
        Arm("shuffled", "PPO with RND, shaped by a reward model of permuted scores", "shuffled"),
        Arm("random", "PPO with RND, shaped by a random reward model", "random"),
        Arm("oracle", "PPO with RND, shaped by a reward model of gained milestones", "oracle"),
    )
}
