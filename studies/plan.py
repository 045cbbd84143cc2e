"""What a study does, and where its results lie. Written once; a resumed study must be the same study."""

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
    """One world, some arms, the same seeds and the same steps for each. `run` is the configuration of every trial."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    arms: tuple[str, ...] = Field(min_length=1)
    seeds: int = Field(5, ge=1, le=100)
    run: RunConfig
    pooling: Pooling = Field("gain", description="what a reward model's label says: a segment's mean, or its gain")

    def save_or_extend(self, folder: Path) -> Self:
        """Write the plan, or check that the folder holds the same one; arms and seeds that it lacks are added to it."""
        file = folder / PLAN_FILE
        if not file.exists():
            folder.mkdir(parents=True, exist_ok=True)
            file.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")
            return self
        kept = self.load(folder)
        if (kept.run, kept.pooling) != (self.run, self.pooling):
            raise InvalidStudy(f"{folder} holds another study: resume it with its own options, or name another folder.")
        arms = tuple(dict.fromkeys((*kept.arms, *self.arms)))  # what others have finished is still compared
        both = kept.model_copy(update={"arms": arms, "seeds": max(kept.seeds, self.seeds)})
        if both != kept:
            file.write_text(both.model_dump_json(indent=2) + "\n", encoding="utf-8")
        return self

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The plan of a folder."""
        try:
            return cls.model_validate_json((folder / PLAN_FILE).read_bytes())
        except FileNotFoundError as error:
            raise InvalidStudy(f"{folder} holds no study: start one with `zelda study WORLD`.") from error
        except ValidationError as error:
            raise InvalidStudy(f"{folder / PLAN_FILE} is damaged: {first_problem(error)}.") from error

    def trials(self) -> list[tuple[str, int]]:
        """All (arm, seed), seed by seed, so that an unfinished study compares equal numbers of seeds."""
        return [(arm, seed) for seed in range(self.seeds) for arm in self.arms]


def parse_arms(names: str) -> tuple[str, ...]:
    """Arms from a comma-separated list, each once: two trials of one arm and seed would play in one store."""
    chosen = tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    strange = [name for name in chosen if name not in ARMS]
    if strange or not chosen:
        raise InvalidStudy(f"--arms: no arm {', '.join(strange) or 'given'}; known are {', '.join(ARMS)}.")
    return chosen


def check_rewards(name: str) -> str:
    """A reward profile's name, checked before the folder gets a plan that no trial could play and none may change."""
    from services.trainer.env.rewards import profiles

    if name not in profiles():
        raise InvalidStudy(f"--rewards: no profile {name!r}; known are {', '.join(profiles())}.")
    return name


def result_file(folder: Path, arm: str, seed: int) -> Path:
    """Where a finished trial's curve lies."""
    return folder / "trials" / f"{arm}-{seed}.json"


def load_curves(folder: Path, plan: StudyPlan) -> dict[str, dict[int, list[dict[str, float]]]]:
    """By arm and seed, one row of figures per epoch; only finished trials."""
    found: dict[str, dict[int, list[dict[str, float]]]] = {arm: {} for arm in plan.arms}
    for arm, seed in plan.trials():
        file = result_file(folder, arm, seed)
        if file.exists():
            found[arm][seed] = json.loads(file.read_bytes())
    return found
