"""The results file of a study: all finished trials of one configuration, from any number of machines.

It is the data behind each table and picture that cites the study. A trial that is in the file is not trained again.
"""

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.config.differences import different_paths
from shared.config.problems import first_problem
from shared.contracts.run import StoredRunConfig
from studies.arms import ARMS
from studies.curves import Curve
from studies.plan import FORMAT, InvalidStudy, LabelSettings, StudyPlan, Trial
from studies.summary import summarise
from studies.whole_file import write_whole

RESULT_FILE: Final = "result.json"
"""The results file of a study that names no other, in its folder."""

Document = TypeVar("Document", bound=BaseModel)


def read_results_file(kind: type[Document], file: Path, otherwise: str) -> Document:
    """Read a results file; InvalidStudy if it is missing, or damaged: then the message says that it is `otherwise`."""
    try:
        return kind.model_validate_json(file.read_bytes())
    except OSError as error:
        raise InvalidStudy(f"{file} is not readable: {error.strerror}.") from error
    except ValidationError as error:
        raise InvalidStudy(f"{file} is {otherwise}: {first_problem(error)}.") from error


class FinishedTrial(BaseModel):
    """A trial's curve, and the commit of the code that trained it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    world: str
    seed: int
    commit: str
    curve: Curve


class _Settings(BaseModel):
    """The stored settings. Values that later versions added get the defaults of the time before."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int
    worlds: tuple[str, ...]
    episode_lengths: tuple[int, ...]
    pooling: str
    run: StoredRunConfig


class Results(BaseModel):
    """The file. `command` repeats the study; the other keys that it has are derived from `trials` when it is saved."""

    model_config = ConfigDict(extra="ignore")

    command: str
    date: date
    commit: str
    cores: int = Field(ge=1)
    settings: dict[str, Any]
    labels: LabelSettings = LabelSettings()
    trials: dict[str, list[FinishedTrial]] = Field(default_factory=dict)

    @classmethod
    def open(cls, file: Path, plan: StudyPlan, command: str, commit: str, cores: int) -> Self:
        """Load the file, or begin a new one; InvalidStudy if it is damaged or holds another study."""
        if not file.exists():
            new = {"command": command, "date": date.today(), "commit": commit, "cores": cores}
            return cls.model_validate({**new, "settings": plan.settings(), "labels": plan.labels})
        found = cls.load(file)
        different = next(different_paths(_completed(found.settings, file), _completed(plan.settings(), file)), None)
        if different is not None:
            raise InvalidStudy(
                f"{file} holds a study with another {different}: use the options of its command, or another file."
            )
        if not found.labels.agrees(plan.labels):
            raise InvalidStudy(
                f"{file} holds trials with other labels or advisers: use the options of its command, or another file."
            )
        return found.model_copy(update={"command": command, "labels": found.labels.joined(plan.labels)})

    @classmethod
    def load(cls, file: Path) -> Self:
        """Load a results file; InvalidStudy if it is damaged, or of a version with other settings or arms."""
        found = read_results_file(cls, file, "not a results file")
        _completed(found.settings, file)
        if unknown := [arm for arm in found.trials if arm not in ARMS]:
            raise InvalidStudy(f"{file} holds trials of the arm {unknown[0]!r}, which this version does not have.")
        return found

    @property
    def steps(self) -> int:
        """Planned environment steps of each trial."""
        return int(self.settings["run"]["epoch_steps"] * (self.settings["run"]["epochs"] or 1))

    def curves(self) -> dict[Trial, Curve]:
        """Return the curves of all trials of the file."""
        return {Trial(arm, one.world, one.seed): one.curve for arm, trials in self.trials.items() for one in trials}

    def add(self, curves: Mapping[Trial, Curve], commit: str, cores: int | None = None) -> None:
        """Add finished trials. A trial that the file has already stays as it is.

        Date, commit and cores (if given) become those of the new trials; without new ones they stay.
        """
        known = self.curves()
        new = {trial: curve for trial, curve in curves.items() if trial not in known}
        for trial, curve in new.items():
            found = FinishedTrial(world=trial.world, seed=trial.seed, commit=commit, curve=curve)
            self.trials.setdefault(trial.arm, []).append(found)
        if new:
            self.date, self.commit, self.cores = date.today(), commit, cores or self.cores
        for trials in self.trials.values():
            trials.sort(key=lambda one: (one.world, one.seed))

    def summary(self) -> dict[str, Any]:
        """Return scores, intervals and comparisons as JSON data."""
        return summarise(self.curves())

    def save(self, file: Path) -> None:
        """Write the file with its derived numbers; a reader sees the old file or the new one."""
        head = self.model_dump(mode="json", include={"command", "date", "commit", "cores"})
        order = [arm for arm in ARMS if arm in self.trials]
        rest = {
            "trials": {
                arm: [one.model_dump(mode="json", exclude_none=True) for one in self.trials[arm]] for arm in order
            },
            "settings": self.settings,
            **({"labels": self.labels.stored()} if self.labels.stored() else {}),
        }
        text = _compact({**head, "steps": self.steps, **self.summary(), **rest})
        write_whole(file, text)


def _completed(settings: dict[str, Any], file: Path) -> dict[str, Any]:
    """Fill in the settings that a later version added, so that equal studies compare as equal."""
    try:
        found = _Settings.model_validate({**settings, "run": {**settings.get("run", {}), "seed": 0}})
    except ValidationError as error:
        raise InvalidStudy(f"{file} is not a results file: settings: {first_problem(error)}.") from error
    if found.format != FORMAT:
        raise InvalidStudy(f"{file} holds a study of an earlier version: choose another file.")
    return found.model_dump(mode="json")


def _compact(data: dict[str, Any]) -> str:
    """JSON with one line for each list of numbers: a new trial changes few lines of the file."""
    lists: list[str] = []

    def mark(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: mark(one) for key, one in value.items()}
        if isinstance(value, list) and not any(isinstance(one, dict | list) for one in value):
            lists.append(json.dumps(value))
            return f"@{len(lists) - 1}@"
        return [mark(one) for one in value] if isinstance(value, list) else value

    text = json.dumps(mark(data), indent=1)
    for place, one in enumerate(lists):
        text = text.replace(f'"@{place}@"', one, 1)
    return text + "\n"
