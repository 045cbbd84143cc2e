"""Builds the caption under a video: run, steps, milestones and scores."""

from shared.contracts.scores import SegmentScores, values_of
from shared.contracts.segment import SegmentManifest


def caption(manifest: SegmentManifest, scores: SegmentScores | None) -> list[str]:
    """Two or three short lines; unknown facts are left out."""
    last = manifest.first_step + manifest.steps - 1
    lines = [
        f"{manifest.run}  epoch {manifest.epoch}  steps {manifest.first_step}-{last}",
        f"milestones {manifest.milestones_start} -> {manifest.milestones_end} of {manifest.milestones_total}",
    ]
    if scores is not None and scores.weighted is not None:
        parts = [f"{name} {value:.2f}" for name, value in values_of(scores.judges).items()]
        lines.append(f"judged {scores.weighted:.2f}:  " + "  ".join(parts))
    elif scores is not None:
        lines.append(f"judges: {scores.status}")
    return lines
