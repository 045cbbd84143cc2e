"""Writes the tables and pictures of docs from the results files: `python -m studies.report.generate`.

A page marks the place with `<!-- study NAME -->` and `<!-- end of study NAME -->`; the data are docs/results/NAME.json,
the picture is docs/images/study-NAME.png. The README marks its claim in the same way: `<!-- claim NAME -->`. The
comparison of one learner with two is at `<!-- learners -->`, the planners' figures are at `<!-- plans -->`, what each
technique adds at `<!-- ablations -->`.
"""

import re
import sys
import textwrap
from pathlib import Path
from typing import Final

from studies.plan import InvalidStudy
from studies.plans.results import PlannerResults
from studies.report.ablations import FOLDER as ABLATED
from studies.report.ablations import ablations_block
from studies.report.charts import draw_curves
from studies.report.claim import claim
from studies.report.learners import FOLDER, learners_block
from studies.report.tables import to_markdown
from studies.report.verdict import verdict
from studies.results import Results

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = ("README.md", "docs/study.md", "docs/planner.md", "docs/exploration.md")
RESULTS: Final = "docs/results"
IMAGES: Final = "docs/images"
BLOCK: Final = re.compile(r"<!-- study (?P<name>[a-z0-9-]+) -->\n.*?<!-- end of study (?P=name) -->", re.DOTALL)
CLAIM: Final = re.compile(r"<!-- claim (?P<name>[a-z0-9-]+) -->\n.*?<!-- end of claim (?P=name) -->", re.DOTALL)
LEARNERS: Final = re.compile(r"<!-- learners -->\n.*?<!-- end of learners -->", re.DOTALL)
ABLATIONS: Final = re.compile(r"<!-- ablations -->\n.*?<!-- end of ablations -->", re.DOTALL)
PLANS: Final = re.compile(r"<!-- plans -->\n.*?<!-- end of plans -->", re.DOTALL)
WIDTH: Final = 140


def generated(page: str, results: Path) -> str:
    """Return the text of a page with the tables and claims of `results`; InvalidStudy if a named file is missing."""
    page = CLAIM.sub(lambda found: _claim(found["name"], results), page)
    page = LEARNERS.sub(lambda found: _learners(results / Path(FOLDER).name), page)
    page = PLANS.sub(lambda found: _plans(results), page)
    page = ABLATIONS.sub(lambda found: _ablations(results / Path(ABLATED).name), page)
    return BLOCK.sub(lambda found: _block(found["name"], results), page)


def _claim(name: str, results: Path) -> str:
    found = Results.load(results / f"{name}.json")
    text = f"{claim(found.summary(), found.steps)} ({found.cores} cores, {found.date}; rules judge)"
    return f"<!-- claim {name} -->\n{textwrap.fill(text, WIDTH)}\n<!-- end of claim {name} -->"


def _learners(results: Path) -> str:
    return f"<!-- learners -->\n{learners_block(results)}\n<!-- end of learners -->"


def _ablations(folder: Path) -> str:
    return f"<!-- ablations -->\n{ablations_block(folder)}\n<!-- end of ablations -->"


def _plans(results: Path) -> str:
    tables = PlannerResults.load(results / "planner.json").tables()
    return f"<!-- plans -->\n{tables}\n<!-- end of plans -->"


def _block(name: str, results: Path) -> str:
    found = Results.load(results / f"{name}.json")
    summary = found.summary()
    lines = "\n".join(f"- {line}" for line in verdict(summary, found.steps))
    source = f"`{found.command}` ({found.cores} cores, {found.date}, [{RESULTS}/{name}.json](results/{name}.json)):"
    picture = f"![Learning curves of all arms](images/{_picture(name)})"
    parts = [f"<!-- study {name} -->\n{source}", picture, f"{to_markdown(summary)}\n{lines}"]
    return "\n\n".join(parts) + f"\n<!-- end of study {name} -->"


def draw_pictures(page: str, results: Path, folder: Path) -> None:
    """Draw the learning curves of every study that the page names; InvalidStudy if a named file is missing."""
    import matplotlib

    matplotlib.use("Agg")
    for found in BLOCK.finditer(page):
        curves = Results.load(results / f"{found['name']}.json").curves()
        (folder / _picture(found["name"])).write_bytes(draw_curves(curves))


def _picture(name: str) -> str:
    return f"study-{name}.png"


def write_pages() -> None:
    """Rewrite all pages and their pictures; InvalidStudy if a file is missing or damaged."""
    for name in PAGES:
        page = ROOT / name
        text = generated(page.read_text("utf-8"), ROOT / RESULTS)
        page.write_text(text, encoding="utf-8")
        draw_pictures(text, ROOT / RESULTS, ROOT / IMAGES)


def main() -> None:
    """Rewrite all pages and their pictures."""
    try:
        write_pages()
    except InvalidStudy as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
