"""The method that finishes the vale, and its variants: each leaves out one technique, or adds memory.

docs/exploration.md explains the settings. Memory cannot be added to the method itself, because recorded play and
options hold none: it is compared with the method without imitation and options.
"""

from dataclasses import dataclass
from typing import Final

EXPLORED: Final = "docs/results/explored"
EPISODE_STEPS: Final = 12_000

_TRAINING: Final = {
    "terminal_on_death": "false",
    "ppo.advantage_floor": "0.1",
    "ppo.curiosity": "0.05",
    "ppo.curiosity_end": "0",
    "ppo.entropy_end": "0.002",
    "ppo.learning_rate_end": "0.00005",
}
_OBSERVATION: Final = {"observation": "obs/v4"}
_OPTIONS: Final = {"options": "strike/v2"}
_EXPLORATION: Final = {"restarts.explore": "3000000"}
_RESTARTS: Final = {"restarts.window": "4", "restarts.share": "0.9", "restarts.mode": "backward"}
_IMITATION: Final = {"imitation.mode": "sil", "imitation.source": "archive", "imitation.coefficient": "1.0"}
_RECOVERY: Final = {"imitation.recovery_share": "0.3"}
_METHOD: Final = {**_TRAINING, **_OBSERVATION, **_OPTIONS, **_EXPLORATION, **_RESTARTS, **_IMITATION, **_RECOVERY}


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of training: an arm of studies with these settings of the runs."""

    name: str
    title: str
    settings: dict[str, str]
    arm: str = "backward"

    @property
    def words(self) -> list[str]:
        """The arm and the settings as options of `zelda study`."""
        return ["--arms", self.arm, *(word for pair in self.settings.items() for word in ("-s", "=".join(pair)))]


def _without(*parts: dict[str, str]) -> dict[str, str]:
    left_out = {name for part in parts for name in part}
    return {name: value for name, value in _METHOD.items() if name not in left_out}


VARIANTS: Final = {
    one.name: one
    for one in (
        Variant("method", "the method", _METHOD),
        Variant(
            "no-archive",
            "without the archive: no exploration, restarts or imitation",
            _without(_EXPLORATION, _RESTARTS, _IMITATION, _RECOVERY),
            arm="judges",
        ),
        Variant(
            "no-restarts",
            "without restarts: every episode begins at the true start",
            _without(_RESTARTS, _RECOVERY),
            arm="judges",
        ),
        Variant("no-imitation", "without imitation", _without(_IMITATION, _RECOVERY)),
        Variant("no-recovery", "without imitated ways back to the trajectory", _without(_RECOVERY)),
        Variant("no-window", "without the window of tiles and the flags (obs/v2)", _without(_OBSERVATION)),
        Variant("buttons", "without imitation and options", _without(_IMITATION, _RECOVERY, _OPTIONS)),
        Variant(
            "memory",
            "as `buttons`, with memory (gru/v1)",
            {**_without(_IMITATION, _RECOVERY, _OPTIONS), "memory": "gru/v1"},
        ),
    )
}
