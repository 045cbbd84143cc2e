"""The figures of an epoch as named numbers, as trackers of experiments take them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from shared.contracts.progress import EpochRow

PLAY: Final = ("train", "evaluation")
"""Groups that are final when an epoch is finished; the others change while judges and reward model work on it."""
CHECKS: Final = "judging"
"""The group that judges write again after the reward model, when their canaries and audited pairs end."""
SETTLED_AFTER: Final = 2
"""Epochs after which a run no longer waits: with `overlap`, an epoch starts before the one before it has its model."""


def epoch_scalars(row: EpochRow) -> dict[str, float]:
    """All numbers of a row by `group/name`, e.g. `train/return_mean`, `judging/agreement`; unknown ones are missing."""
    fields = row.model_dump()
    groups = {
        "train": fields.pop("metrics"),
        "evaluation": fields.pop("evaluation"),
        "judging": fields.pop("judging"),
        "stage_seconds": fields.pop("stage_seconds"),
        "epoch": fields,
    }
    return {f"{group}/{name}": value for group, values in groups.items() for name, value in _numbers(values or {})}


def steps_so_far(rows: list[EpochRow]) -> list[int]:
    """Environment steps of the run at the end of each row: the horizontal axis of its charts."""
    total, axis = 0, []
    for row in rows:
        total += row.steps
        axis.append(total)
    return axis


def is_final(name: str, row: EpochRow, newest: int, *, judged: bool) -> bool:
    """Whether a figure of the row will not change, as far as rows show.

    `newest` is the run's newest finished epoch; `judged` says whether judges and a reward model follow the row's epoch.
    """
    group = name.partition("/")[0]
    if group in PLAY:
        return True
    complete = row.segments_waiting == 0 and (row.reward_model_passed is not None or not judged)
    # Without a model, the run goes on after the judges' deadline.
    settled = complete or row.epoch + SETTLED_AFTER <= newest
    return settled and (group != CHECKS or row.epoch < newest)


def _numbers(values: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            for inner, number in _numbers(value):
                yield f"{name}/{inner}", number
        elif isinstance(value, bool | int | float):
            yield str(name), float(value)
