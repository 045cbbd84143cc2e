"""TrainingSessionConfig: the one object that configures a run's training, from the driver down to its environments."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from services.trainer.env.config import EnvConfig
from services.trainer.settings import DriverGroup, LearnerDevice
from shared.config.settings import StoreSettings
from shared.contracts.ids import RunId
from shared.contracts.learning.ppo import PpoConfig
from shared.contracts.run import RunConfig
from shared.errors import Permanent

SESSION_CONFIG = "session_config"
"""Field of RLlib's `env_config` that holds the TrainingSessionConfig. RLlib adds `num_envs` beside it."""
GAME_THREADS: Final = 2
"""Threads that step the games when the driver samples: the emulator releases the interpreter's lock."""


class UnplayableRun(Permanent):
    """No driver can play this run with the given configuration and files."""


@dataclass(frozen=True)
class TrainingSessionConfig:
    """Session, learner, env runners and environments all receive this object. It is picklable: Ray ships it as a whole.

    A change of any field needs a new session. Files must have the same path on every machine that plays.
    """

    run_id: RunId
    run: RunConfig
    """The run's configuration, as the coordinator ordered it."""
    ppo: PpoConfig = field(default_factory=PpoConfig)
    """The run's `ppo` block, scaled to its batch size."""
    store: StoreSettings | None = None
    """Where segments are recorded; None records nothing."""
    rom: Path | None = None
    start_state: Path | None = None
    curriculum: tuple[float, ...] = ()
    """Share of episodes that begin after milestone 1, 2, ..."""
    learner_device: LearnerDevice = "cpu"
    """Where the driver's learner computes gradients."""
    runner: int = 0
    """Index of the env runner. RLlib's runners set their own."""

    @classmethod
    def of(cls, run_id: RunId, run: RunConfig, driver: DriverGroup, store: StoreSettings | None) -> Self:
        """Join what the run orders with what the driver's settings say."""
        return cls(
            run_id=run_id,
            run=run,
            ppo=run.ppo.scaled_to(run.batch_size),
            store=store,
            rom=driver.rom,
            start_state=driver.start_state,
            curriculum=tuple(driver.curriculum),
            learner_device=driver.learner_device,
        )

    def environment(self, **more: object) -> EnvConfig:
        """The configuration of the run's environments. `more` adds fields that only some of them have."""
        return EnvConfig.of_run(self.run, rom=self.rom, true_start=self.start_state, **more)

    @property
    def planned_steps(self) -> int:
        """Environment steps of the whole run, for schedules; 0 if only its hours are bounded."""
        return (self.run.planned_epochs or 0) * self.run.played_steps

    @property
    def threads(self) -> int:
        """Threads that step the games of one process."""
        # Bramble's steps are so short that handing them to threads costs what it gains (bench/env.py).
        return GAME_THREADS if self.run.env_runners == 0 and self.run.game != "bramble" else 1
