"""The stages of an epoch: which one a run is in, how long each took, and when the run will end.

Pure. Every time is the distance of two commit objects, or a figure in one of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Final, get_args

from services.coordinator.domain.lifecycle import ACTIVE
from services.coordinator.domain.run_view import EpochView, RunView
from shared.contracts.driver import EVALUATION_S, DriverHeartbeat
from shared.contracts.progress import Stage
from shared.contracts.run import RunConfig

STAGES: Final[tuple[Stage, ...]] = get_args(Stage)
JUDGED_STAGES: Final[tuple[Stage, ...]] = ("judging", "teaching")
"""The stages that only judged epochs have."""


@dataclass(frozen=True, slots=True)
class StagePosition:
    """Where a run is: a stage, and the share of it that is done; None if unknown."""

    stage: Stage | None
    share: float | None = None


@dataclass(frozen=True, slots=True)
class RemainingTime:
    """Seconds to the end of a run. With `at_least`, a stage that follows was never measured and is left out."""

    seconds: float | None
    at_least: bool = False


def stage_position(view: RunView, beat: DriverHeartbeat | None) -> StagePosition:
    """The stage of the newest epoch. `beat` is the driver's heartbeat in that epoch, or None before its first."""
    epoch = view.current
    if epoch is None or view.record.state not in ACTIVE:
        return StagePosition(None)
    if epoch.finished is not None:
        return _after_training(epoch)
    if beat is None or beat.state in ("waiting", "starting", "idle"):
        return StagePosition("starting")
    if beat.state == "exploring":
        return StagePosition("starting", beat.explored)
    if beat.state == "evaluating":
        return StagePosition("evaluating", beat.evaluated)
    return StagePosition("playing", min(1.0, beat.steps / view.record.config.played_steps))


def _after_training(epoch: EpochView) -> StagePosition:
    listed = len(epoch.finished.document.segments) if epoch.finished else 0
    if not epoch.judged:
        return StagePosition("judging", epoch.outcomes / listed)
    return StagePosition("teaching" if epoch.awaits_model else "starting")


def stage_seconds(epoch: EpochView) -> dict[Stage, float]:
    """The wall time of each stage, as far as it is known. A driver that was started again has no time of its start."""
    if epoch.finished is None:
        return {}
    finished = epoch.finished.document
    found: dict[Stage, float] = {"playing": finished.seconds}
    evaluating = finished.metrics.get(EVALUATION_S)
    if evaluating is not None:
        found["evaluating"] = evaluating
        whole = (finished.created - epoch.start.document.created).total_seconds()
        if finished.attempt == 1:
            found = {"starting": max(0.0, whole - finished.seconds - evaluating), **found}
    if epoch.card is not None:
        after = max(0.0, (epoch.card.document.created - finished.created).total_seconds())
        teaching = min(epoch.card.document.seconds, after)
        found |= {"judging": after - teaching, "teaching": teaching}
    return found


def remaining_time(view: RunView, position: StagePosition, rate: float | None, now: datetime) -> RemainingTime:
    """How long the run still takes, from the medians of its finished epochs. `rate` is in steps per second."""
    config, current = view.record.config, view.current
    measured = [stage_seconds(epoch) for epoch in view.epochs]
    rate = rate or _usual_rate(view.epochs)
    if config.planned_epochs is None or current is None or not rate or view.record.state != "running":
        return RemainingTime(None)
    usual = {stage: _median([row[stage] for row in measured if stage in row]) for stage in STAGES}
    usual["playing"] = config.played_steps / rate
    if not config.eval_interval:
        usual["evaluating"] = 0.0
    exploring = position.stage == "starting" and position.share is not None
    usual["starting"] = None if exploring else 0.0  # only the first epoch starts a driver, and may explore before it
    if usual["judging"] is None:
        usual["judging"] = _judging_so_far(current, position, now)
    rest = _rest_of_epoch(current, position, usual, now)
    if config.overlap and current.epoch + 1 < config.planned_epochs:  # the judges work while the next epoch plays
        rest = {stage: seconds for stage, seconds in rest.items() if stage not in JUDGED_STAGES}
    parts = [*rest.values(), *_later_epochs(config, current.epoch + 1, usual)]
    return RemainingTime(sum(part or 0.0 for part in parts), at_least=None in parts)


def _judging_so_far(epoch: EpochView, position: StagePosition, now: datetime) -> float | None:
    """The seconds that the judges of a first epoch will need for all its segments, by those judged so far."""
    if position.stage != "judging" or not position.share or epoch.finished is None:
        return None
    return (now - epoch.finished.document.created).total_seconds() / position.share


def _later_epochs(config: RunConfig, first: int, usual: dict[Stage, float | None]) -> list[float | None]:
    """The seconds of each stage in all epochs from `first` on; None for a stage that was never measured.

    With overlap only the last epoch's judges add time, because the others work while the next epoch plays.
    """
    planned = config.planned_epochs or 0
    if first >= planned:
        return []
    judged = config.judged_epochs(planned) - config.judged_epochs(first)
    if config.overlap:
        judged = int(config.judges_epoch(planned - 1))
    times = {stage: judged if stage in JUDGED_STAGES else planned - first for stage in STAGES}
    return [None if expected is None else expected * times[stage] for stage, expected in usual.items() if times[stage]]


def _rest_of_epoch(
    epoch: EpochView, position: StagePosition, usual: dict[Stage, float | None], now: datetime
) -> dict[Stage, float | None]:
    """The seconds that each stage of the current epoch still takes."""
    if epoch.complete or position.stage is None:
        return {}
    here = STAGES.index(position.stage)
    judged = epoch.start.document.config.judges_epoch(epoch.epoch)
    rest = {stage: usual[stage] for stage in STAGES[here:] if judged or stage not in JUDGED_STAGES}
    if epoch.finished is None:
        expected = rest[position.stage]
        rest[position.stage] = None if expected is None else expected * (1 - (position.share or 0.0))
        return rest
    elapsed = (now - epoch.finished.document.created).total_seconds()
    for stage in JUDGED_STAGES:
        expected = usual[stage]
        if expected is not None:
            rest[stage], elapsed = max(0.0, expected - elapsed), max(0.0, elapsed - expected)
    return rest


def _usual_rate(epochs: Sequence[EpochView]) -> float | None:
    done = [epoch.finished.document for epoch in epochs if epoch.finished is not None]
    return _median([one.steps / one.seconds for one in done if one.seconds > 0])


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None
