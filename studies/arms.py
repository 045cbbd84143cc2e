"""The arms of a study: ways of training that differ only in their additional reward, or in who assists them.

Runs are curious by default: they count visits of cells. So every arm but `none` is curious as well. The arms below
`visits` differ from it only in what they add, `none` differs from it only in curiosity, and `rnd` only in its kind.
"""

from dataclasses import dataclass
from typing import Final, Literal, get_args

from shared.contracts.learning.ppo import CuriosityView
from shared.contracts.learning.restarts import ImitationSource, RestartSelection
from shared.contracts.run import RewardsName

ImitationMode = Literal["none", "sil", "awr"]
ArchiveSelection = RestartSelection | Literal["none"]
ShapingSource = Literal["none", "judges", "shuffled", "random", "oracle", "noisy", "bank"]
BankLabels = Literal["llm", "rules-bank", "llm-shuffled"]


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of training.

    `shaping` is the source of the reward model, `curiosity` switches curiosity on, `view` replaces what is new to it,
    `rewards` replaces the study's reward profile, and `direct` pays the judge's score of each segment without a reward
    model. With `planner`, rules act in dialogs and puzzles while the policy trains; with `guidance`, models advise it;
    it is evaluated alone. With `options` it may choose macros, in evaluation as well. `imitation` also imitates the
    best judged play, or what else `source` names. With `backward`, half of the training episodes begin by the backward
    curriculum; with `restarts`, half of them begin at states of the archive that this selection draws. With `memory`
    the policy is recurrent, with `window` it also sees its surroundings (obs/v3). `bank` names the labels of a reward
    model that is trained on the bank instead of the run's play.
    """

    name: str
    title: str
    shaping: ShapingSource = "none"
    curiosity: bool = True
    view: CuriosityView | None = None
    rewards: RewardsName | None = None
    direct: bool = False
    planner: bool = False
    imitation: ImitationMode = "none"
    source: ImitationSource = "judged"
    backward: bool = False
    restarts: ArchiveSelection = "none"
    guidance: bool = False
    options: bool = False
    memory: bool = False
    window: bool = False
    bank: BankLabels | None = None

    @property
    def assisted(self) -> bool:
        """Whether somebody beside the policy acts or advises: a planner, models, the executor of macros."""
        return self.planner or self.guidance or self.options

    @property
    def in_default_study(self) -> bool:
        """Whether a study trains it without being asked to: unassisted play of the judges' claim, not a technique."""
        technique = self.backward or self.memory or self.window or self.restarts != "none" or self.source != "judged"
        return not (self.assisted or technique or self.shaping in ("noisy", "bank"))


ARMS: Final = {
    arm.name: arm
    for arm in (
        Arm("none", "PPO alone", curiosity=False),
        Arm("rnd", "PPO with RND curiosity", view="novelty/v1"),
        Arm("visits", "PPO with visit counts", view="cells/v1"),
        Arm("events", "PPO with visit counts and a hand-written profile of events", rewards="events"),
        Arm("rules-direct", "PPO with visit counts, paid the judge's score of each segment", direct=True),
        Arm("judges", "PPO with visit counts, shaped by the judges' reward model", "judges"),
        Arm("sil", "as `judges`, and imitates segments by their lead in score", "judges", imitation="sil"),
        Arm("awr", "as `judges`, and imitates segments by the exponential of their lead", "judges", imitation="awr"),
        Arm(
            "archive-sil",
            "as `judges`, and imitates trajectories of the state archive by their lead in return",
            "judges",
            imitation="sil",
            source="archive",
        ),
        Arm(
            "backward",
            "as `judges`, and episodes begin by the backward curriculum",
            "judges",
            backward=True,
        ),
        *(
            Arm(
                f"archive-{selection}",
                f"as `judges`, and half of the episodes begin at archive states drawn by {selection}",
                "judges",
                restarts=selection,
            )
            for selection in get_args(RestartSelection)
        ),
        Arm("shuffled", "PPO with visit counts, shaped by a reward model of permuted scores", "shuffled"),
        Arm("random", "PPO with visit counts, shaped by a random reward model", "random"),
        Arm("oracle", "PPO with visit counts, shaped by a reward model of gained milestones", "oracle"),
        Arm("memory", "PPO with visit counts and a recurrent policy", memory=True),
        Arm("window", "PPO with visit counts that sees the tiles around the hero (obs/v3)", window=True),
        Arm("rules-noisy", "PPO with visit counts, shaped by a reward model of the judges' votes with noise", "noisy"),
        Arm("llm", "PPO with visit counts, shaped by a reward model of a language model's votes", "bank", bank="llm"),
        Arm(
            "rules-bank",
            "PPO with visit counts, shaped by a reward model of the rules' votes on the same segments",
            "bank",
            bank="rules-bank",
        ),
        Arm(
            "llm-shuffled",
            "PPO with visit counts, shaped by a reward model of the language model's votes, permuted",
            "bank",
            bank="llm-shuffled",
        ),
        Arm("planner", "PPO with visit counts, assisted in training by rules in dialogs and puzzles", planner=True),
        Arm("guided", "PPO with visit counts, advised in training by models that the policy may follow", guidance=True),
        Arm(
            "options",
            "PPO with visit counts and macros as options, evaluated with them: assisted play",
            options=True,
        ),
    )
}
