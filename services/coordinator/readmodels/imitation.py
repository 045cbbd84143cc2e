"""Reads the scores among which the imitated play of the next epoch is selected."""

from services.coordinator.domain.imitation import compared_epochs, select_imitation
from services.coordinator.domain.run_view import RunView
from services.coordinator.readmodels.score_counters import ScoreCounters
from shared.contracts.epoch import Imitation


async def read_imitation(scores: ScoreCounters, view: RunView) -> Imitation | None:
    """What the epoch after all epochs of the view imitates; None without imitation, or if no segment stands out."""
    config = view.record.config.imitation
    compared = compared_epochs(config, view.epochs)
    found = [one for epoch in compared for one in await scores.read_epoch(view.record.run, epoch.epoch)]
    return select_imitation(config, compared, {one.segment: one for one in found})
