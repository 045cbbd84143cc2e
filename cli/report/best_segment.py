"""The opening of a report: the video of the best segment beside the votes that it received."""

import base64
from html import escape
from typing import Final

from cli.console import format_number
from cli.report.data import BestSegment
from shared.contracts.scores import JudgeResult, SegmentScores

VOTE_COLUMNS: Final = ("dimension", "judge", "votes, 0 to 5", "value")


def render_best(best: BestSegment | None) -> str:
    """Render video, votes and reasons side by side."""
    if best is None:
        return "<p>No judged segment has a video.</p>"
    scores = best.scores
    encoded = base64.b64encode(best.video).decode()
    return (
        '<div class="best">'
        f'<video controls autoplay loop muted width="480" src="data:video/mp4;base64,{encoded}"></video>'
        f"<div>{_votes(scores)}{_reasons(scores)}</div></div>"
        f"<p>{escape(scores.segment)} of epoch {scores.epoch}: score {format_number(scores.weighted)}, "
        f"agreement {format_number(scores.agreement)}. The score is the weighted mean of the values.</p>"
    )


def _votes(scores: SegmentScores) -> str:
    head = "".join(f"<th>{column}</th>" for column in VOTE_COLUMNS)
    rows = "".join(_rows(judge) for judge in scores.judges)
    return f"<table><tr>{head}</tr>{rows}</table>"


def _rows(judge: JudgeResult) -> str:
    """One row per dimension that this judge scored, or one that says that it abstained."""
    if judge.status == "abstained":
        return f"<tr><td>-</td><td>{escape(judge.judge)}</td><td>abstained</td><td>-</td></tr>"
    return "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(judge.judge)}</td>"
        f"<td>{' '.join(map(str, score.votes))}</td><td>{format_number(score.value)}</td></tr>"
        for name, score in judge.dimensions.items()
    )


def _reasons(scores: SegmentScores) -> str:
    reasons = dict.fromkeys(reason for judge in scores.judges for reason in judge.reasons[:1])
    return f"<ul>{''.join(f'<li>{escape(reason)}</li>' for reason in reasons)}</ul>"
