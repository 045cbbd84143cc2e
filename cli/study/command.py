"""The command that repeats a study, and the commit of the code that runs it."""

import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Any

from shared.contracts.run import RunConfig
from studies.arms import ARMS
from studies.episode_length import episode_length
from studies.plan import LabelSettings, StudyPlan, Trial

SET_BY_OPTIONS = ("world", "seed", "epochs", "epoch_steps", "episode_length", "frame_skip", "rewards")
BATCH = 2_048
FIXED = {
    "env_runners": 0,
    "envs_per_runner": 16,
    "batch_size": BATCH,
    "segment_steps": 100,  # a longer segment of these short episodes would show several things
}
"""Fields of the runs that no option sets; `--set` may replace them."""
PACKAGE = Path(__file__).parents[2]


def command(plan: StudyPlan) -> str:
    """Return the command that repeats this study."""
    config = plan.run
    return " ".join(
        [
            f"zelda study {','.join(plan.worlds)} --seeds {_seeds(plan.seeds)} --arms {','.join(plan.arms)}",
            f"--epochs {config.planned_epochs} --epoch-steps {config.epoch_steps} --frame-skip {config.frame_skip}",
            *_length(plan),
            f"--rewards {config.rewards} --segments {config.sampling.budget}",
            f"--mode {config.shaping.mode} --coefficient {config.shaping.coefficient:g}",
            f"--conservatism {config.shaping.conservatism:g} --pooling {plan.pooling}",
            *_labels(plan.labels),
            *([] if plan.explored is None else [f"--explored {plan.explored}"]),
            *_pairs(config),
        ]
    )


def widen(plan: StudyPlan, finished: Collection[Trial], labels: LabelSettings) -> StudyPlan:
    """Return the plan with the arms, seeds and labels of finished trials: a results file grows by several commands."""
    found = {trial.arm for trial in finished} | set(plan.arms)
    seeds = sorted({trial.seed for trial in finished} | set(plan.seeds))
    arms = tuple(arm for arm in ARMS if arm in found)
    return plan.model_copy(update={"arms": arms, "seeds": tuple(seeds), "labels": plan.labels.joined(labels)})


def commit() -> str:
    """Return the checked-out commit, with `-changed` if code differs from it, or `unknown` outside a repository."""
    head = _git("rev-parse", "--short=12", "HEAD")
    if head is None:
        return "unknown"
    return head if _git("diff", "--quiet", "HEAD", "--", ".", ":!docs") is not None else f"{head}-changed"


def _git(*arguments: str) -> str | None:
    """The output of a git command, or None if it fails."""
    try:
        done = subprocess.run(["git", "-C", str(PACKAGE), *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _seeds(seeds: tuple[int, ...]) -> str:
    """The ranges of seeds as `--seeds` takes them: `5`, `100:110`, `100:102,105:110`."""
    if seeds == tuple(range(len(seeds))):
        return str(len(seeds))
    firsts = [seed for seed in seeds if seed - 1 not in seeds]
    ends = [seed + 1 for seed in seeds if seed + 1 not in seeds]
    return ",".join(f"{first}:{end}" for first, end in zip(firsts, ends, strict=True))


def _length(plan: StudyPlan) -> list[str]:
    """The option for another length than the walk-through's; it is one for all worlds."""
    usual = tuple(episode_length(world, plan.run.frame_skip) for world in plan.worlds)
    return [] if plan.episode_lengths == usual else [f"--episode-length {plan.episode_lengths[0]}"]


def _labels(labels: LabelSettings) -> list[str]:
    noise = [] if labels.noisy_accuracy is None else [f"--noisy-accuracy {labels.noisy_accuracy:g}"]
    source = [] if labels.source is None else [f"--labels {labels.source}"]
    return [*noise, *source, *([] if labels.planner_file is None else [f"--planner {labels.planner_file}"])]


def _pairs(config: RunConfig) -> list[str]:
    """One `-s` for each field that no option sets and that differs from a study's own value."""
    usual = RunConfig.model_validate({**FIXED, "epochs": config.epochs}).model_dump(mode="json")
    usual["sampling"] |= {"milestones": False, "budget": config.sampling.budget}
    usual["shaping"] = config.shaping.model_dump(mode="json")
    return [f"-s {path}={value}" for path, value in _changes(usual, config.model_dump(mode="json"))]


def _changes(usual: dict[str, Any], found: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    changes: list[tuple[str, Any]] = []
    for name, value in found.items():
        if not prefix and name in SET_BY_OPTIONS:
            continue
        if isinstance(value, dict) and isinstance(usual.get(name), dict):
            changes += _changes(usual[name], value, f"{prefix}{name}.")
        elif value != usual.get(name):
            changes.append((f"{prefix}{name}", value))
    return changes
