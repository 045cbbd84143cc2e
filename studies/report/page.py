"""The HTML page of a study: verdict, curves, trials, tables and the command, in one self-contained file."""

import base64
import html
import re
from collections.abc import Mapping
from typing import Any

from studies.report.charts import draw_curves, draw_points
from studies.report.tables import to_markdown
from studies.report.verdict import verdict
from studies.summary import Curves

STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;margin:1rem 0;font-size:14px}
td,th{border:1px solid #ccc;padding:.3rem .6rem;text-align:left}
img{max-width:100%}code{background:#f2f2f2;padding:.1rem .3rem}"""


def render_page(summary: Mapping[str, Any], curves: Curves, steps: int, command: str) -> str:
    """Render the page as HTML. `steps` are those of each trial."""
    import matplotlib

    matplotlib.use("Agg")
    title = f"Study on {', '.join(summary['worlds'])}: {steps:,} steps per trial"
    sentences = "".join(f"<li>{_inline(text)}</li>" for text in verdict(summary, steps))
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style>
<h1>{html.escape(title)}</h1>
<h2>Verdict</h2><ul>{sentences}</ul>
<h2>Curves</h2>
<p>Evaluation episodes with sampled actions from the true start, one process per trial. Lines are interquartile means
over trials, bands are 95 % bootstrap intervals. {describe_comparison(curves)}</p>
{_picture("Learning curves of all arms", draw_curves(curves))}
<h2>Trials</h2>
<p>One point per trial; lines are interquartile means. <i>Learning speed</i> is the mean share of milestones over all
evaluations; <i>final</i> its mean over the last three; <i>finished</i> the share of episodes that reach every milestone
in the last three.</p>
{_picture("Scores of each trial", draw_points(curves))}
{markdown_to_html(to_markdown(summary))}
<p>Command: <code>{html.escape(command)}</code></p></html>
"""


def describe_comparison(curves: Curves) -> str:
    """State what the arms have in common: until all trials are finished, they are not comparable."""
    arms = {trial.arm for trial in curves}
    if len({frozenset((t.world, t.seed) for t in curves if t.arm == arm) for arm in arms}) == 1:
        return "All arms had the same steps and seeds."
    return "Some trials are not finished: the arms have the same steps, but not yet the same seeds."


def markdown_to_html(text: str) -> str:
    """Convert Markdown tables to HTML; supports nothing else."""
    parts = []
    for block in text.strip().split("\n\n"):
        rows = [[_inline(cell.strip()) for cell in line.strip("|").split("|")] for line in block.splitlines()]
        head = "".join(f"<th>{cell}</th>" for cell in rows[0])
        body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows[2:])
        parts.append(f"<table><tr>{head}</tr>{body}</table>")
    return "\n".join(parts)


def _inline(text: str) -> str:
    """Escape a text; `code` becomes an element."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(text))


def _picture(title: str, png: bytes) -> str:
    return f'<img alt="{title}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'
