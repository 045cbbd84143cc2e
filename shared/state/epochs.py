"""Derives a run's position from the epoch documents in the store."""

from collections.abc import Container

from shared.contracts.ids import RunId
from shared.store import keys


def first_unfinished_epoch(run: RunId, names: Container[str]) -> int:
    """The lowest epoch whose `finished.json` is not among these keys (those under `keys.epochs_prefix`)."""
    epoch = 0
    while keys.epoch_finished(run, epoch) in names:
        epoch += 1
    return epoch
