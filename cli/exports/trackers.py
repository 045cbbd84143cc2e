"""Feeds the figures of a run to a tracker: all that exist, and with `follow` those that come until the run ends."""

import time
from collections.abc import Callable
from typing import Final

from cli.console import overwrite_line
from cli.stored_runs import read_store
from cli.unknown_run import require_summary
from services.exporter.adapters.trackers import Tracker
from services.exporter.domain.scalars import epoch_scalars, is_final, steps_so_far
from shared.contracts.events import ENDED_STATES
from shared.contracts.ids import RunId
from shared.contracts.progress import RunSummary
from shared.state.documents import read_document
from shared.store import keys
from shared.store.port import Store

POLL_S: Final = 5.0
Read = Callable[[], RunSummary]


def read_summary(run: RunId) -> RunSummary:
    """The summary of a run as the store holds it now."""

    async def work(store: Store) -> RunSummary:
        await require_summary(store, run)
        return await read_document(store, RunSummary, keys.run_summary(run))

    return read_store(work, run)


def feed(tracker: Tracker, first: RunSummary, read: Read, follow: bool) -> None:
    """Write every figure once. `follow` ends with the run."""
    written: dict[int, set[str]] = {}
    summary = first
    while True:
        ended = summary.state in ENDED_STATES
        _write_new(tracker, summary, written, everything=ended or not follow)
        if ended or not follow:
            return
        overwrite_line(f"{len(written)} epochs written; waiting for the next one; ctrl-C ends.")
        time.sleep(POLL_S)
        summary = read()


def _write_new(tracker: Tracker, summary: RunSummary, written: dict[int, set[str]], everything: bool) -> None:
    newest = max((row.epoch for row in summary.epochs), default=0)
    for row, step in zip(summary.epochs, steps_so_far(summary.epochs), strict=True):
        done, judged = written.get(row.epoch, ()), summary.config.judges_epoch(row.epoch)
        ready = {
            name: value
            for name, value in epoch_scalars(row).items()
            if name not in done and (everything or is_final(name, row, newest, judged=judged))
        }
        if ready:
            tracker.write(ready, step, summary.updated)
            written.setdefault(row.epoch, set()).update(ready)
