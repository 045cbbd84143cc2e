"""The configuration of an environment, validated from plain data.

Unknown fields are refused: a typing error in an experiment must not pass as a default.
"""

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from services.trainer.games import GAMES
from shared.config.problems import first_problem
from shared.contracts.run import ActionsName, Difficulty, ObservationName, OptionsName, RunConfig, World
from shared.errors import ContractError
from shared.game.games.game import Game
from shared.game.games.registry import GameRequest


class EnvConfig(BaseModel):
    """One environment, or `num_envs` of them. `runner` and `seed` determine every episode's start."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    game: str = "bramble"
    world: World = "vale"
    difficulty: Difficulty = "normal"
    rom: Path | None = Field(None, description="the user's own ROM image, for games that need one")
    true_start: Path | None = Field(None, description="the user's own saved state that is such a game's true start")
    seed: int = Field(0, ge=0, le=2**31 - 1)
    runner: int = Field(0, ge=0, le=9_999, description="index of the env runner; 0 is the driver's own")
    num_envs: int = Field(1, ge=1, le=256)
    threads: int = Field(1, ge=1, le=64, description="threads that step the environments of one process")
    frame_skip: int = Field(4, ge=1, le=60)
    episode_length: int = Field(30_000, ge=1, le=10_000_000)
    terminal_on_death: bool = Field(True, description="whether an episode ends when the hero dies")
    segment_steps: int = Field(300, ge=10, le=5_000)
    observation: ObservationName = "obs/v2"
    guided: bool = Field(False, description="whether the observation has a part for suggestions, zeros without one")
    actions: ActionsName = "actions/v2"
    options: OptionsName = "none"
    rewards: str = Field("default", description="name of a reward profile, or path of a profile file")

    @classmethod
    def of(cls, values: object) -> Self:
        """Validate plain data. Raises ContractError with a sentence that names the field."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ContractError(f"environment configuration: {first_problem(error, cls)}") from error

    @classmethod
    def of_run(cls, run: RunConfig, **more: object) -> Self:
        """The configuration of a run's environments. `more` adds fields that a run lacks: runner, threads, files."""
        shared = (
            "game", "world", "difficulty", "seed", "frame_skip", "episode_length", "terminal_on_death",
            "segment_steps", "observation", "actions", "options", "rewards",
        )  # fmt: skip
        values = {name: getattr(run, name) for name in shared}
        guided = run.guidance.enabled
        return cls.of({**values, "num_envs": run.envs_per_runner, "guided": guided, **more})

    def open_game(self) -> Game:
        """Open the configured game."""
        return GAMES.open(
            self.game, GameRequest(self.world, self.difficulty, self.seed, rom=self.rom, start=self.true_start)
        )
