"""The HTML of a report. All external text is escaped; the page loads nothing from elsewhere."""

from collections.abc import Sequence
from html import escape
from string import Template
from typing import Any, Final

from cli.console import EPOCH_COLUMNS, epoch_cells
from cli.report import plots
from cli.report.best_segment import render_best
from cli.report.data import MAX_SEGMENTS, ReportData

MAX_UNREADABLE_SHOWN: Final = 20  # a damaged bucket must not flood the report with its keys
PAGE = Template(
    """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>$run</title><style>
body { font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; color: #1d242c; max-width: 66rem; margin: 2rem auto;
       padding: 0 1rem; }
h1 { margin-bottom: .2rem; } h2 { margin-top: 2.2rem; font-size: 1.1rem; } .dim { color: #667382; }
.best { display: flex; flex-wrap: wrap; gap: 1.5rem; align-items: flex-start; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
.scroll { overflow-x: auto; }
th, td { text-align: right; padding: .3rem .7rem; border-bottom: 1px solid #d9dfe6; } th { color: #667382; }
svg { max-width: 100%; height: auto; } video { image-rendering: pixelated; border: 1px solid #d9dfe6; }
pre { background: #f3f5f7; padding: .8rem; overflow-x: auto; font-size: .85rem; }
</style></head><body>
<h1>$run</h1><p class="dim">$state. $world, $attempts, created $created.</p>
<h2>The best segment</h2>$best
<h2>Epochs</h2><div class="scroll">$table</div>$alarms$unreadable
<h2>Does the agent learn?</h2>$learning
<h2>How do the judges score it?</h2>$judging
<h2>How good is the reward model?</h2>$accuracy
<h2>Where did it go?</h2>$rooms
<h2>Configuration</h2><pre>$config</pre>
</body></html>
"""
)


def render_report(data: ReportData) -> str:
    """Render the whole page."""
    summary = data.summary
    config = summary.config
    return PAGE.substitute(
        run=escape(summary.run),
        state=escape(f"{summary.state.capitalize()}{f': {summary.reason}' if summary.reason else ''}"),
        world=escape(f"{config.game} {config.world}, seed {config.seed}"),
        attempts="one attempt" if summary.attempt == 1 else f"{summary.attempt} attempts",
        created=f"{summary.created:%Y-%m-%d %H:%M} UTC",
        table=_table(EPOCH_COLUMNS, [epoch_cells(row.model_dump()) for row in data.rows]),
        alarms="".join(f"<p><strong>{escape(row.alarm)}</strong></p>" for row in data.rows if row.alarm),
        unreadable=_unreadable(data.unreadable),
        learning=plots.plot_learning(data),
        judging=plots.plot_judging(data),
        accuracy=plots.plot_accuracy(data),
        rooms=_rooms(data),
        best=render_best(data.best),
        config=escape(config.model_dump_json(indent=2)),
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    lines = ("".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _unreadable(names: Sequence[str]) -> str:
    if not names:
        return ""
    shown = "".join(f"<li>{escape(name)}</li>" for name in names[:MAX_UNREADABLE_SHOWN])
    more = f"<li>and {len(names) - MAX_UNREADABLE_SHOWN} more</li>" if len(names) > MAX_UNREADABLE_SHOWN else ""
    return (
        f"<p><strong>These objects cannot be read and are missing from this report:</strong></p><ul>{shown}{more}</ul>"
    )


def _rooms(data: ReportData) -> str:
    """Render the map, with a note if it is a sample."""
    if not any(data.rooms.values()):
        return _no_rooms(data)
    sampled = any(row.segments_recorded > MAX_SEGMENTS for row in data.rows)
    note = f"<p>The map shows an even sample of at most {MAX_SEGMENTS} segments per epoch.</p>"
    return plots.plot_rooms(data) + note * sampled


def _no_rooms(data: ReportData) -> str:
    recorded = any(row.segments_recorded for row in data.rows)
    return f"<p>{'No recorded segment can be read.' if recorded else 'No segment was recorded.'}</p>"
