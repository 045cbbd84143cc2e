"""How long a run will take on this machine, from the measured stages of an earlier run."""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

from cli.client import CoordinatorClient

DEFAULT_EPOCHS: Final = 3
LOOKED_AT: Final = 20  # newest runs among which one like the new one is looked for
NEEDED: Final = ("game", "observation")
"""A run that differs in one of these says nothing about the speed of another."""
RELATED: Final = ("env_runners", "envs_per_runner", "frame_skip", "batch_size", "rnd")
"""Speed depends on these too: a run with equal values is preferred, and differences are named."""

Row = Mapping[str, Any]


def estimate(client: CoordinatorClient, run: str, config: Mapping[str, Any]) -> str:
    """A sentence for the user who has just started a run."""
    if config["epochs"] is None and config["run_hours"] is not None:
        return f"No epoch starts after {config['run_hours']:g} h."
    best: tuple[list[str], float, str] | None = None
    for item in client.get("/runs", limit=LOOKED_AT)["items"]:
        if item["run"] == run:
            continue
        former = client.get(f"/runs/{item['run']}")["record"]["config"]
        if any(former[name] != config[name] for name in NEEDED):
            continue
        differences = [f"{name} {former[name]}" for name in RELATED if former[name] != config[name]]
        if best is not None and len(best[0]) <= len(differences):
            continue
        seconds = expected_seconds(config, client.get(f"/runs/{item['run']}/epochs"))
        if seconds is not None:
            best = differences, seconds, item["run"]
    if best is None:
        return "No similar run was measured here before: the remaining time appears after the first batch."
    differences, seconds, former = best
    other = f", which had {', '.join(differences)}" if differences else ""
    return f"It will take {roughly(seconds)} on this machine, judged by {former}{other}."


def expected_seconds(config: Mapping[str, Any], rows: Sequence[Row]) -> float | None:
    """Seconds of a run with `config`, from the finished epochs of a comparable run; None if none was measured.

    Playing and evaluating grow with the steps, judging with the segments; the reward model takes as long as before.
    """
    times = [
        (
            row["stage_seconds"]["playing"] / row["steps"],
            row["stage_seconds"].get("evaluating", 0.0) / row["steps"],
        )
        for row in rows
        if row["steps"] and row.get("stage_seconds", {}).get("playing")
    ]
    if not times:
        return None
    play, evaluate = (median(column) for column in zip(*times, strict=True))
    judge, teach = _judging_times(rows)
    steps = math.ceil(config["epoch_steps"] / config["batch_size"]) * config["batch_size"]
    segments = min(config["sampling"]["budget"], steps // config["segment_steps"])
    played = steps * (play + (evaluate if config["eval_interval"] else 0.0))
    planned: int = config["epochs"] or DEFAULT_EPOCHS
    judged = math.ceil(
        planned / config.get("judge_interval", 1)
    )  # a coordinator of an earlier version has no such field
    return float(played * planned + (segments * judge + teach) * judged)


def _judging_times(rows: Sequence[Row]) -> tuple[float, float]:
    """Seconds of judging per segment, and of a reward model's training: medians of the judged epochs."""
    judged = [row for row in rows if row["segments_recorded"] and row.get("stage_seconds", {}).get("playing")]
    if not judged:
        return 0.0, 0.0
    judging = median(row["stage_seconds"].get("judging", 0.0) / row["segments_recorded"] for row in judged)
    return judging, median(row["stage_seconds"].get("teaching", 0.0) for row in judged)


def roughly(seconds: float) -> str:
    """A duration as people say it: `about 9 h`, `about 20 min`, `less than a minute`."""
    if seconds < 60:
        return "less than a minute"
    if seconds < 90 * 60:
        return f"about {round(seconds / 60)} min"
    return f"about {round(seconds / 3600)} h" if seconds < 48 * 3600 else f"about {round(seconds / 86_400)} days"
