"""Figures for people: an epoch's row, a run's summary and its live progress, computed from views and tallies."""

from datetime import datetime

from services.coordinator.domain.tally import Tally
from services.coordinator.domain.view import EpochView, RunView
from shared.contracts.driver import DriverHeartbeat
from shared.contracts.progress import EpochRow, RunProgress, RunSummary


def row(epoch: EpochView, tally: Tally, alarm: str | None = None) -> EpochRow | None:
    """The row of a finished epoch; None while it trains. `alarm` is what the guard said after it."""
    if epoch.finished is None:
        return None
    finished = epoch.finished.document
    listed = {str(segment.segment) for segment in finished.segments}
    outcomes = [status for segment, status in tally.outcomes.items() if segment in listed]
    shaped_by = epoch.start.document.reward_model
    return EpochRow.model_validate(
        {
            "epoch": epoch.epoch,
            "steps": finished.steps,
            "episodes": finished.episodes,
            "seconds": finished.seconds,
            "steps_per_s": finished.steps / finished.seconds if finished.seconds > 0 else None,
            "segments_recorded": len(listed),
            "segments_judged": outcomes.count("judged"),
            "segments_abstained": outcomes.count("abstained"),
            "segments_dead": outcomes.count("dead"),
            "segments_waiting": len(listed) - len(outcomes),
            "segments_dropped": finished.segments_dropped,
            "reward_model": finished.reward_model,
            "reward_model_epoch": shaped_by.epoch if shaped_by and finished.reward_model else None,
            "stopped": finished.stopped,
            "alarm": alarm,
            "metrics": finished.metrics,
            "evaluation": finished.evaluation,
        }
        | judged_figures(tally)
        | card_figures(epoch)
    )


def judged_figures(tally: Tally) -> dict[str, object]:
    """What the judges said and what it cost."""
    return {
        "votes": tally.votes,
        "agreement": tally.agreement.value,
        "score_mean": tally.score.value,
        "prompt_tokens": tally.prompt_tokens,
        "output_tokens": tally.output_tokens,
        "money": tally.money,
    }


def card_figures(epoch: EpochView) -> dict[str, object]:
    """How good the reward model is that was trained after the epoch; nothing before there is one."""
    if epoch.card is None:
        return {}
    card = epoch.card.document
    return {
        "reward_model_accuracy": card.accuracy.confident,
        "reward_model_pairs": card.accuracy.pairs,
        "reward_model_passed": card.gates_passed,
    }


def summary(view: RunView, rows: list[EpochRow], now: datetime) -> RunSummary:
    """The table of the whole run."""
    record = view.record
    return RunSummary(
        run=record.run,
        state=record.state,
        reason=record.reason,
        attempt=record.attempt,
        config=record.config,
        created=record.created,
        updated=now,
        epochs=rows,
    )


def progress(
    view: RunView, tally: Tally, recorded: int, beat: DriverHeartbeat | None, doing: str, now: datetime
) -> RunProgress:
    """Where the run is now. `recorded` counts the archives of the current epoch, `beat` may be of an older epoch."""
    config, current = view.record.config, view.current
    epoch = current.epoch if current else view.record.epoch
    live = beat if beat is not None and beat.epoch == epoch else None
    finished = current.finished.document if current and current.finished else None
    steps = finished.steps if finished else live.steps if live else 0
    rate = live.steps_per_s if live else None
    return RunProgress(
        run=view.record.run,
        state=view.record.state,
        doing=doing,
        epoch=epoch,
        epochs_planned=config.planned_epochs,
        steps=steps,
        epoch_steps=config.epoch_steps,
        steps_per_s=rate,
        segments_recorded=recorded,
        segments_judged=tally.count("judged"),
        segments_abstained=tally.count("abstained"),
        segments_dead=tally.count("dead"),
        segments_left=max(0, recorded - len(tally.outcomes)),
        votes=tally.votes,
        agreement=tally.agreement.value,
        reward_model_accuracy=newest_accuracy(view),
        eta_s=eta(view, epoch, steps, rate),
        last_sign=beat.time if beat else None,
        updated=now,
    )


def newest_accuracy(view: RunView) -> float | None:
    """Held-out accuracy of the newest reward model, or None before the first."""
    cards = [epoch.card.document for epoch in view.epochs if epoch.card is not None]
    return cards[-1].accuracy.confident if cards else None


def eta(view: RunView, epoch: int, steps: int, rate: float | None) -> float | None:
    """Seconds until the last planned step at the current rate; None when either is unknown."""
    planned = view.record.config.planned_epochs
    if planned is None or not rate or view.record.state != "running":
        return None
    per_epoch = view.record.config.epoch_steps
    return max(0.0, per_epoch * (planned - epoch) - steps) / rate
