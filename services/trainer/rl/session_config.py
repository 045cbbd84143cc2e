"""SessionConfig: the one object that configures a run's training, from the driver down to its environments."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from services.trainer.rl.hyperparameters import Hyperparameters
from services.trainer.settings import DriverGroup
from shared.config.settings import StoreSettings
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig

SESSION_CONFIG = "session_config"
"""Field of RLlib's `env_config` that holds the SessionConfig. RLlib adds `num_envs` beside it."""
LOCAL_CORES = 2  # threads that step the games when the driver samples: the emulator releases the interpreter's lock


@dataclass(frozen=True)
class SessionConfig:
    """Session, learner, env runners and environments all receive this object. It is picklable: Ray ships it as a whole.

    A change of any field needs a new session. Files must have the same path on every machine that plays.
    """

    run_id: RunId
    run: RunConfig
    """The run's configuration, as the coordinator ordered it."""
    hyperparameters: Hyperparameters = field(default_factory=Hyperparameters)
    store: StoreSettings | None = None
    """Where segments are recorded; None records nothing."""
    rom: Path | None = None
    start_state: Path | None = None
    curriculum: tuple[float, ...] = ()
    """Share of episodes that begin after milestone 1, 2, ..."""
    runner: int = 0
    """Index of the env runner. RLlib's runners set their own."""

    @classmethod
    def of(cls, run_id: RunId, run: RunConfig, driver: DriverGroup, store: StoreSettings | None) -> Self:
        """Join what the run orders with what the driver's settings say."""
        return cls(
            run_id=run_id,
            run=run,
            hyperparameters=Hyperparameters(
                learning_rate=driver.learning_rate, entropy=driver.entropy, curiosity=driver.curiosity
            ),
            store=store,
            rom=driver.rom,
            start_state=driver.start_state,
            curriculum=tuple(driver.curriculum),
        )

    @property
    def threads(self) -> int:
        """Threads that step the games of one process."""
        # Bramble's steps are so short that handing them to threads costs what it gains (bench/env.py).
        return LOCAL_CORES if self.run.env_runners == 0 and self.run.game != "bramble" else 1
