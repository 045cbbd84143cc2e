"""The plan of a study and the files of its folder. A resumed study must have the same plan."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from shared.config.differences import different_paths
from shared.config.problems import first_problem
from shared.contracts.card import Pooling
from shared.contracts.ids import Digest, RunId
from shared.contracts.run import RunConfig, StoredRunConfig
from studies.curves import Curve
from studies.whole_file import write_whole

PLAN_FILE: Final = "study.json"
FORMAT: Final = 2
"""1: one world, seeds as a number, labels of `oracle` by level, segments selected by milestones."""
NOISY_ACCURACY: Final = 0.80  # of `rules-noisy` until a model has been measured


class InvalidStudy(Exception):
    """The study cannot run as requested. The message is one sentence for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One arm trained with one seed on one world."""

    arm: str
    world: str
    seed: int

    @property
    def name(self) -> RunId:
        """The trial's run, and the name of its files."""
        return RunId(f"{self.arm}-{self.world.replace(':', '-')}-{self.seed}")


class LabelSettings(BaseModel):
    """Which labels and advisers the arms of a study use; None where no arm of it does. Comparable trials had the same.

    `noise` is the standard deviation that lowers the rules judge to `noisy_accuracy`. `votes` is the SHA-256 of a
    language model's answers, `source` the path that they were read from, which may differ between machines.
    `advisers` names the models that `guided` asks, by mode, or `rules`; `planner_file` is the file that names them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    noisy_accuracy: float | None = Field(None, ge=0.5, le=1)
    noise: float | None = Field(None, ge=0)
    votes: Digest | None = None
    source: str | None = None
    advisers: str | None = None
    planner_file: str | None = None

    def joined(self, other: Self) -> Self:
        """Return these settings, with those of `other` where these have none."""
        return self.model_copy(update={name: value for name, value in other if getattr(self, name) is None})

    def agrees(self, other: Self) -> bool:
        """Whether both have the same labels and advisers, as far as both have any."""
        compared = ("noisy_accuracy", "noise", "votes", "advisers")
        return all(getattr(self.joined(other), name) == getattr(other.joined(self), name) for name in compared)

    def stored(self) -> dict[str, Any]:
        """Return what is set, as JSON data."""
        return self.model_dump(mode="json", exclude_none=True)


class StudyPlan(BaseModel):
    """Several arms with the same worlds, seeds and steps. `run` is the configuration of every trial."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = Field(FORMAT, ge=1, le=FORMAT)
    worlds: tuple[str, ...] = Field(min_length=1)
    episode_lengths: tuple[int, ...] = Field(description="steps of an episode, one number per world")
    arms: tuple[str, ...] = Field(min_length=1)
    seeds: tuple[int, ...] = Field(min_length=1)
    run: StoredRunConfig
    pooling: Pooling = Field("gain", description="what a label rates: the mean of a segment, or its gain")
    labels: LabelSettings = LabelSettings()
    explored: str | None = Field(None, description="folder of explored paths that trials begin with, and add to")

    @model_validator(mode="after")
    def _evaluated(self) -> Self:
        """Raise InvalidStudy if no epoch is evaluated: a trial without an evaluation has no curve."""
        epochs = self.run.planned_epochs or 1
        if self.run.eval_interval > epochs:
            raise InvalidStudy(
                f"eval_interval {self.run.eval_interval} evaluates none of {epochs} epochs: set {epochs} or less."
            )
        return self

    def save_or_extend(self, folder: Path) -> Self:
        """Write the plan to the folder, or add arms and seeds to the same plan there; InvalidStudy for another plan."""
        file = folder / PLAN_FILE
        if not file.exists():
            self._write(file)
            return self
        saved = self.load(folder)
        if saved.format != self.format:
            raise InvalidStudy(
                f"{folder} contains a study of an earlier version: read it with --show, or choose another folder."
            )
        other = next(different_paths(saved.settings(), self.settings()), None)
        if other is None and not saved.labels.agrees(self.labels):
            other = "labels or advisers"
        if other is not None:
            raise InvalidStudy(
                f"{folder} contains another study (it differs in {other}): resume it with its original options, or "
                "choose another folder."
            )
        # Finished trials of other arms and seeds stay in the comparison.
        arms = tuple(dict.fromkeys((*saved.arms, *self.arms)))
        seeds = tuple(dict.fromkeys((*saved.seeds, *self.seeds)))
        labels = saved.labels.joined(self.labels)
        update = {"arms": arms, "seeds": seeds, "labels": labels, "explored": self.explored}
        both = saved.model_copy(update=update)
        if both != saved:
            both._write(file)
        return self

    def _write(self, file: Path) -> None:
        write_whole(file, self.model_dump_json(indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Load the plan of a folder; InvalidStudy if it is missing or damaged."""
        try:
            return cls.model_validate(_present_form(json.loads((folder / PLAN_FILE).read_bytes())))
        except FileNotFoundError as error:
            raise InvalidStudy(f"{folder} contains no study: start one with `zelda study WORLD`.") from error
        except ValidationError as error:
            raise InvalidStudy(f"{folder / PLAN_FILE} is damaged: {first_problem(error)}.") from error
        except ValueError as error:
            raise InvalidStudy(f"{folder / PLAN_FILE} is damaged: {error}.") from error

    def trials(self) -> list[Trial]:
        """Return all trials, seed by seed: an unfinished study has equal numbers of seeds per arm."""
        return [Trial(arm, world, seed) for seed in self.seeds for world in self.worlds for arm in self.arms]

    def settings(self) -> dict[str, Any]:
        """Return what must be equal for trials to be comparable: all but arms, seeds and labels, as JSON data."""
        run = self.run.model_dump(mode="json", exclude={"seed", "world", "episode_length"})
        return {
            "format": self.format,
            "worlds": list(self.worlds),
            "episode_lengths": list(self.episode_lengths),
            "pooling": self.pooling,
            "run": run,
        }

    def run_of(self, trial: Trial) -> RunConfig:
        """Return the run's configuration for the trial's world and seed, without the changes of the arm."""
        length = self.episode_lengths[self.worlds.index(trial.world)]
        return self.run.model_copy(update={"world": trial.world, "episode_length": length, "seed": trial.seed})

    @property
    def steps(self) -> int:
        """Planned environment steps of each trial."""
        return self.run.epoch_steps * (self.run.planned_epochs or 1)

    def result_file(self, folder: Path, trial: Trial) -> Path:
        """Return the path of a finished trial's rows of metrics."""
        name = trial.name if self.format == FORMAT else f"{trial.arm}-{trial.seed}"
        return folder / "trials" / f"{name}.json"

    def load_curves(self, folder: Path) -> dict[Trial, Curve]:
        """Load the curves of all finished trials of the folder; InvalidStudy if a file is damaged."""
        files = {trial: self.result_file(folder, trial) for trial in self.trials()}
        return {trial: _load_curve(file) for trial, file in files.items() if file.exists()}


def _load_curve(file: Path) -> Curve:
    try:
        return Curve.of(json.loads(file.read_bytes()))
    except (ValueError, KeyError, TypeError) as error:  # not JSON, or not a list of an epoch's metrics
        raise InvalidStudy(
            f"{file} is damaged: delete it and repeat the command without --show, which trains what neither the "
            "results file nor the trial's store has."
        ) from error


def _present_form(stored: Any) -> Any:
    """Convert a stored plan of format 1, which names no format."""
    if not isinstance(stored, dict) or "format" in stored or not isinstance(stored.get("seeds"), int):
        return stored
    run = stored.get("run") or {}
    return {
        **stored,
        "format": 1,
        "worlds": [run.get("world", "vale")],
        "episode_lengths": [run.get("episode_length", 0)],
        "seeds": list(range(stored["seeds"])),
    }
