"""The HTML of a report: the live page's own styles and modules, and the data that they show. It loads nothing."""

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, Final

from services.coordinator.domain.verdict import verdict
from services.coordinator.live.page_files import page_files
from services.coordinator.report.data import ReportData, ReportedPlay
from services.coordinator.report.modules import one_script

POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:; base-uri 'none'; "
    "form-action 'none'; script-src 'sha256-{digest}'"
)
"""Only the report's own script runs: markup that a judge or a game slipped in could do nothing."""

STYLES: Final = ("/page/vendor/uPlot.min.css", "/page/page.css")
CHARTS: Final = "/page/vendor/uPlot.iife.min.js"


def render_report(data: ReportData) -> str:
    """Render the whole file."""
    summary, style = data.summary, "".join(_text(path) for path in STYLES)
    script = f"{_text(CHARTS)}\n{one_script(_text, '/page/report.js')}"
    config = summary.config
    attempts = "one attempt" if summary.attempt == 1 else f"{summary.attempt} attempts"
    about = (
        f"{config.game} {config.world}, seed {config.seed}; {attempts}, created {summary.created:%Y-%m-%d %H:%M} UTC."
    )
    if data.explored is not None:
        about += (
            f" Before epoch 0 it explored {data.explored.steps:,} steps without a network and without judges; "
            f"the policy learnt from the path that was found, {data.explored.path_steps:,} steps long."
        )
    return Template((files("services.coordinator.report") / "report.html").read_text("utf-8")).substitute(
        policy=POLICY.format(digest=b64encode(sha256(script.encode()).digest()).decode()),
        run=escape(summary.run),
        state=escape(summary.state),
        reason=f'<p class="bad">{escape(summary.reason)}</p>' if summary.reason else "",
        verdict="".join(f"<li>{escape(sentence)}</li>" for sentence in verdict(summary)),
        about=escape(about),
        style=style,
        data=_as_json(data),
        script=script,
    )


def _as_json(data: ReportData) -> str:
    """The data for the script. `<` is written as an escape, so that no text can end the element."""
    document = {
        "summary": data.summary.model_dump(mode="json"),
        "first": _play(data.first),
        "best": _play(data.best),
        "rooms": data.rooms.model_dump(mode="json"),
        "pictures": {f"{group}:{room}": _address(png, "image/png") for (group, room), png in data.pictures.items()},
        "unreadable": data.unreadable,
    }
    return json.dumps(document, separators=(",", ":")).replace("<", "\\u003c")


def _play(play: ReportedPlay | None) -> dict[str, Any] | None:
    if play is None:
        return None
    return {
        "scores": play.scores.model_dump(mode="json"),
        "video": play.video and _address(play.video, "video/mp4"),
        "frames": [_address(frame, "image/png") for frame in play.frames],
    }


def _address(content: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{b64encode(content).decode()}"


def _text(path: str) -> str:
    return page_files()[path].content.decode()
