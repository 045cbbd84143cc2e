"""The HTML page of a study: curves, tables and the command, in one self-contained file."""

import base64
import html
import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from studies.arms import ARMS
from studies.stats import iqm_rows, resampled
from studies.summary import MEASURE, Curve, to_markdown

COLOURS = ("#4c566a", "#d08770", "#2e7d32", "#b0b0b0", "#1f5fa8")


def render_page(result: Mapping[str, Any], curves: Mapping[str, Mapping[int, Curve]], command: str) -> str:
    """Render the page as HTML."""
    picture = base64.b64encode(draw_curves(curves)).decode()
    title = f"Study on {result['world']}: {result['steps']:,} steps per trial"
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}}
table{{border-collapse:collapse;margin:1rem 0}}td,th{{border:1px solid #ccc;padding:.3rem .6rem;text-align:left}}
img{{max-width:100%}}code{{background:#f2f2f2;padding:.1rem .3rem}}</style>
<h1>{html.escape(title)}</h1>
<p>Share of the world's milestones that evaluation episodes reach. Lines are interquartile means over seeds, bands are
95 % bootstrap intervals. {describe_comparison(curves)}</p>
<img alt="Learning curves of all arms" src="data:image/png;base64,{picture}">
{markdown_to_html(to_markdown(result))}
<p>Command: <code>{html.escape(command)}</code></p></html>
"""


def describe_comparison(curves: Mapping[str, Mapping[int, Curve]]) -> str:
    """State what the arms have in common: until all trials are finished, they are not comparable."""
    if len({frozenset(found) for found in curves.values()}) == 1:
        return "All arms had the same steps and seeds."
    return "Some trials are not finished: the arms have the same steps, but not yet the same seeds."


def draw_curves(curves: Mapping[str, Mapping[int, Curve]]) -> bytes:
    """Draw the curves as PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 5), dpi=110)
    rng = np.random.default_rng(0)
    for colour, (name, found) in zip(COLOURS, curves.items(), strict=False):
        if not found:
            continue
        values = np.array([[row[MEASURE] for row in curve] for curve in found.values()])
        steps = np.array([[row["steps"] for row in curve] for curve in found.values()]).mean(0)
        low, high = _band(values, rng)
        axes.plot(steps, iqm_rows(np.sort(values.T, axis=1)), color=colour, label=ARMS[name].title)
        axes.fill_between(steps, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set(xlabel="environment steps", ylabel="share of milestones", ylim=(0, 1.02))
    axes.legend(loc="upper left", frameon=False)
    figure.tight_layout()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    pyplot.close(figure)
    return buffer.getvalue()


def _band(values: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """95 % bootstrap interval of the IQM at every epoch. `values`: (seeds, epochs)."""
    bounds = [np.quantile(iqm_rows(np.sort(resampled(one, rng), axis=1)), (0.025, 0.975)) for one in values.T]
    low, high = np.array(bounds).T
    return low, high


def markdown_to_html(text: str) -> str:
    """Convert Markdown tables to HTML; supports nothing else."""
    parts = []
    for block in text.strip().split("\n\n"):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in rows[0])
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[2:])
        parts.append(f"<table><tr>{head}</tr>{body}</table>")
    return "\n".join(parts)
