"""Builds the caption under a video: run, steps, milestones, scores, and who acted."""

from collections.abc import Sequence

from shared.contracts.scores import SegmentScores, counted_results, values_of
from shared.contracts.segment import SegmentManifest


def caption(manifest: SegmentManifest, scores: SegmentScores | None, actors: Sequence[str] = ()) -> list[str]:
    """Two to four short lines; unknown facts are left out. `actors` names who acted in each step of an assisted run."""
    last = manifest.first_step + manifest.steps - 1
    lines = [
        f"{manifest.run}  epoch {manifest.epoch}  steps {manifest.first_step}-{last}",
        f"milestones {manifest.milestones_start} -> {manifest.milestones_end} of {manifest.milestones_total}",
    ]
    if scores is not None and scores.weighted is not None:
        parts = [f"{name} {value:.2f}" for name, value in values_of(counted_results(scores)).items()]
        lines.append(f"judged {scores.weighted:.2f}:  " + "  ".join(parts))
    elif scores is not None:
        lines.append(f"judges: {scores.status}")
    if actors:
        shares = (f"{name} {list(actors).count(name)}" for name in dict.fromkeys(actors))
        lines.append(f"steps by:  {'  '.join(shares)}")
    return lines


def acting_notes(actors: Sequence[str]) -> list[str]:
    """A line for every picture of a segment: who made the step that led to it. The first one shows the start."""
    return ["", *(f"acts: {name}" for name in actors)] if actors else []
