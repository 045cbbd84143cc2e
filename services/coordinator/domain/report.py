"""Reports for users: the row of an epoch, the summary and the progress of a run. Computed from views and counters."""

from datetime import datetime

from services.coordinator.domain.run_view import EpochView, RunView
from services.coordinator.domain.score_counter import ScoreCounter
from services.coordinator.domain.stages import remaining_time, stage_position, stage_seconds
from shared.contracts.driver import DriverHeartbeat
from shared.contracts.progress import EpochRow, RunProgress, RunSummary


def epoch_row(epoch: EpochView, counter: ScoreCounter, alarm: str | None = None) -> EpochRow | None:
    """The row of a finished epoch; None while it trains. `alarm` is the reason of an over-optimisation alarm."""
    if epoch.finished is None:
        return None
    finished = epoch.finished.document
    listed = {str(segment.segment) for segment in finished.segments}
    outcomes = [status for segment, status in counter.outcomes.items() if segment in listed]
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
            "stage_seconds": stage_seconds(epoch),
            "stopped": finished.stopped,
            "alarm": alarm,
            "metrics": finished.metrics,
            "evaluation": finished.evaluation,
            "assistance": finished.assistance,
        }
        | judging_fields(counter)
        | card_fields(epoch)
    )


def judging_fields(counter: ScoreCounter) -> dict[str, object]:
    """The judges' scores and their cost."""
    return {
        "votes": counter.votes,
        "agreement": counter.agreement.value,
        "score_mean": counter.score.value,
        "prompt_tokens": counter.prompt_tokens,
        "output_tokens": counter.output_tokens,
        "money": counter.money,
    }


def card_fields(epoch: EpochView) -> dict[str, object]:
    """The quality of the reward model trained on the epoch; empty before that."""
    if epoch.card is None:
        return {}
    card = epoch.card.document
    return {
        "reward_model_accuracy": card.accuracy.confident,
        "reward_model_pairs": card.accuracy.pairs,
        "reward_model_compared": None if card.labels == "ratings" else card.compared.train,
        "reward_model_passed": card.gates_passed,
    }


def run_summary(view: RunView, rows: list[EpochRow], now: datetime) -> RunSummary:
    """The table of a run, with a row for each finished epoch."""
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


def run_progress(
    view: RunView, counter: ScoreCounter, recorded: int, heartbeat: DriverHeartbeat | None, doing: str, now: datetime
) -> RunProgress:
    """The current state of a run. `recorded` counts segments of the current epoch; `heartbeat` may be older than it."""
    config, current = view.record.config, view.current
    epoch = current.epoch if current else view.record.epoch
    current_beat = heartbeat if heartbeat is not None and heartbeat.epoch == epoch else None
    finished = current.finished.document if current and current.finished else None
    steps = finished.steps if finished else current_beat.steps if current_beat else 0
    source = finished or current_beat
    rate = current_beat.steps_per_s if current_beat else None
    position = stage_position(view, current_beat)
    remaining = remaining_time(view, position, rate, now)
    return RunProgress(
        run=view.record.run,
        state=view.record.state,
        doing=_before_training(current_beat) or doing,
        stage=position.stage,
        stage_share=position.share,
        epoch=epoch,
        epochs_planned=config.planned_epochs,
        steps=steps,
        epoch_steps=config.played_steps,
        steps_per_s=rate,
        segments_recorded=recorded,
        segments_judged=counter.count("judged"),
        segments_abstained=counter.count("abstained"),
        segments_dead=counter.count("dead"),
        segments_left=max(0, recorded - len(counter.outcomes)),
        votes=counter.votes,
        agreement=counter.agreement.value,
        reward_model_accuracy=newest_accuracy(view),
        eta_s=remaining.seconds,
        eta_at_least=remaining.at_least,
        assistance=source.assistance if source else None,
        last_sign=heartbeat.time if heartbeat else None,
        updated=now,
    )


def newest_accuracy(view: RunView) -> float | None:
    """Held-out accuracy of the newest reward model, or None before the first one."""
    cards = [epoch.card.document for epoch in view.epochs if epoch.card is not None]
    return cards[-1].accuracy.confident if cards else None


def _before_training(beat: DriverHeartbeat | None) -> str | None:
    """What happens before an epoch is trained; None if no heartbeat says so."""
    if beat is not None and beat.state == "waiting":
        return f"Epoch {beat.epoch} waits for a driver: all places are taken (ZELDA_TRAINER__MAX_DRIVERS)."
    if beat is not None and beat.state == "exploring":
        return f"Exploration without a network before epoch 0: {beat.explored:.0%}."
    return None
