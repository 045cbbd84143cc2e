"""The plan of a study and the files of its folder. A resumed study must have the same plan."""

import json
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.contracts.base import first_problem
from shared.contracts.card import Pooling
from shared.contracts.run import RunConfig
from studies.arms import ARMS

PLAN_FILE = "study.json"


class InvalidStudy(Exception):
    """The study cannot run as requested. The message is one sentence for the person at the terminal."""


class StudyPlan(BaseModel):
    """One world, several arms, the same seeds and steps for each. `run` is the configuration of every trial."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    arms: tuple[str, ...] = Field(min_length=1)
    seeds: int = Field(5, ge=1, le=100)
    run: RunConfig
    pooling: Pooling = Field("gain", description="what a label rates: the mean of a segment, or its gain")

    def save_or_extend(self, folder: Path) -> Self:
        """Write the plan to the folder, or add arms and seeds to the same plan there; InvalidStudy for another plan."""
        file = folder / PLAN_FILE
        if not file.exists():
            folder.mkdir(parents=True, exist_ok=True)
            file.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")
            return self
        saved = self.load(folder)
        if (saved.run, saved.pooling) != (self.run, self.pooling):
            raise InvalidStudy(
                f"{folder} contains another study: resume it with its original options, or choose another folder."
            )
        arms = tuple(dict.fromkeys((*saved.arms, *self.arms)))  # finished trials of other arms stay in the comparison
        both = saved.model_copy(update={"arms": arms, "seeds": max(saved.seeds, self.seeds)})
        if both != saved:
            file.write_text(both.model_dump_json(indent=2) + "\n", encoding="utf-8")
        return self

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Load the plan of a folder; InvalidStudy if it is missing or damaged."""
        try:
            return cls.model_validate_json((folder / PLAN_FILE).read_bytes())
        except FileNotFoundError as error:
            raise InvalidStudy(f"{folder} contains no study: start one with `zelda study WORLD`.") from error
        except ValidationError as error:
            raise InvalidStudy(f"{folder / PLAN_FILE} is damaged: {first_problem(error)}.") from error

    def trials(self) -> list[tuple[str, int]]:
        """Return all (arm, seed) pairs, seed by seed: an unfinished study has equal numbers of seeds per arm."""
        return [(arm, seed) for seed in range(self.seeds) for arm in self.arms]


def parse_arms(names: str) -> tuple[str, ...]:
    """Parse a comma-separated list of arms. Duplicates are removed: two equal trials would share a store."""
    chosen = tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    if not chosen:
        raise InvalidStudy(f"--arms: name at least one arm; choose from {', '.join(ARMS)}.")
    unknown = [name for name in chosen if name not in ARMS]
    if unknown:
        raise InvalidStudy(f"--arms: unknown arm {', '.join(unknown)}; choose from {', '.join(ARMS)}.")
    return chosen


def check_rewards(name: str) -> str:
    """Return the name of a reward profile; InvalidStudy if it is unknown. Call it before the plan is written."""
    from services.trainer.env.rewards import profiles

    if name not in profiles():
        raise InvalidStudy(f"--rewards: unknown profile {name!r}; choose from {', '.join(profiles())}.")
    return name


def result_file(folder: Path, arm: str, seed: int) -> Path:
    """Return the path of a finished trial's curve."""
    return folder / "trials" / f"{arm}-{seed}.json"


def load_curves(folder: Path, plan: StudyPlan) -> dict[str, dict[int, list[dict[str, float]]]]:
    """Load the curves of all finished trials, by arm and seed: one row of metrics per epoch."""
    found: dict[str, dict[int, list[dict[str, float]]]] = {arm: {} for arm in plan.arms}
    for arm, seed in plan.trials():
        file = result_file(folder, arm, seed)
        if file.exists():
            found[arm][seed] = json.loads(file.read_bytes())
    return found
