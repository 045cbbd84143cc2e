"""The results files of `python -m studies.ablations`, one per variant, and their table."""

import json
from datetime import date
from pathlib import Path
from statistics import fmean
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, Field

from studies.results import Results, read_results_file
from studies.whole_file import write_whole

FOLDER: Final = "docs/results/ablations"
NOT_MEASURED: Final = "Not measured yet: `python -m studies.ablations` trains the variants and writes their table here."
SEPARATOR: Final = "; "  # of commands, as in a shell
HEAD: Final = (
    "| variant | trials | steps | milestones of 16, mean (each trial) | episodes that finish, of 100 (each trial) |\n"
    "|---|---|---|---|---|"
)


class EvaluatedPolicy(BaseModel):
    """How the episodes with the policy of one trial ended; `finished` counts those that finish the world.

    `commit` is that of the code that trained the trial; None in older files, which name one commit for all trials.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    episodes: int = Field(ge=1)
    finished: int = Field(ge=0)
    milestones_mean: float = Field(ge=0)
    deaths: int = Field(ge=0)
    commit: str | None = None


class VariantResults(BaseModel):
    """The file of one variant: the commands, and the evaluated policy of each seed.

    Date, commit and cores are those of the newest trials.
    """

    model_config = ConfigDict(extra="forbid")

    title: str
    command: str
    date: date
    commit: str
    cores: int = Field(ge=1)
    steps: int = Field(ge=1, description="environment steps of each training, without the exploration")
    seeds: dict[int, EvaluatedPolicy] = Field(default_factory=dict)

    @property
    def milestones(self) -> float:
        """Milestones of an episode, mean over the seeds; NaN without a seed."""
        return fmean(one.milestones_mean for one in self.seeds.values()) if self.seeds else float("nan")

    def add(self, seed: int, policy: EvaluatedPolicy, command: str, trained: Results) -> None:
        """Add the policy of a trial that the study `trained` has; `command` measured it."""
        if command not in self.command.split(SEPARATOR):
            self.command += SEPARATOR + command
        for known, one in self.seeds.items():  # of an older file
            self.seeds[known] = one.model_copy(update={"commit": one.commit or self.commit})
        self.date, self.commit, self.cores = trained.date, trained.commit, trained.cores
        self.seeds[seed] = policy

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read a file; InvalidStudy if it is missing or damaged."""
        return read_results_file(cls, file, "no results file of an ablation")

    def save(self, file: Path) -> None:
        """Write the file; a reader sees the old one or the new one."""
        write_whole(file, json.dumps(self.model_dump(mode="json", exclude_none=True), indent=1) + "\n")


def results_file(folder: Path, variant: str) -> Path:
    """The results file of a variant."""
    return folder / f"{variant}.json"


def ablations_block(folder: Path) -> str:
    """The text of the page; InvalidStudy if a file is damaged."""
    found = {file.stem: VariantResults.load(file) for file in sorted(folder.glob("*.json"))}
    if not found:
        return NOT_MEASURED
    by_date = sorted(found.values(), key=lambda one: one.date)
    newest = by_date[-1]
    commands = dict.fromkeys(command for one in by_date for command in one.command.split(SEPARATOR))
    best_first = sorted(found, key=lambda name: -found[name].milestones)
    lines = [HEAD, *(_line(name, found[name]) for name in best_first)]
    source = f"`{SEPARATOR.join(commands)}` ({newest.cores} cores, {newest.date}, [results](results/ablations)):"
    return f"{source}\n\n" + "\n".join(lines)


def _line(name: str, found: VariantResults) -> str:
    policies = [found.seeds[seed] for seed in sorted(found.seeds)]
    milestones = [one.milestones_mean for one in policies]
    finished = [100 * one.finished / one.episodes for one in policies]
    each = (", ".join(f"{value:.1f}" for value in milestones), ", ".join(f"{value:.0f}" for value in finished))
    return (
        f"| `{name}`: {found.title} | {len(policies)} | {found.steps:,} "
        f"| {found.milestones:.1f} ({each[0]}) | {fmean(finished):.0f} ({each[1]}) |"
    )
