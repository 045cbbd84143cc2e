"""Writes the tables of docs from the results files: `python -m studies.report.generate`.

A page marks the place with `<!-- study NAME -->` and `<!-- end of study NAME -->`; the data are docs/results/NAME.json.
"""

import re
import sys
from pathlib import Path
from typing import Final

from studies.plan import InvalidStudy
from studies.report.tables import to_markdown
from studies.report.verdict import verdict
from studies.results import Results

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = ("docs/study.md",)
RESULTS: Final = "docs/results"
BLOCK: Final = re.compile(r"<!-- study (?P<name>[a-z0-9-]+) -->\n.*?<!-- end of study (?P=name) -->", re.DOTALL)


def generated(page: str, results: Path) -> str:
    """Return the text of a page with the tables of `results`; InvalidStudy if a named file is missing."""
    return BLOCK.sub(lambda found: _block(found["name"], results), page)


def _block(name: str, results: Path) -> str:
    found = Results.load(results / f"{name}.json")
    summary = found.summary()
    lines = "\n".join(f"- {line}" for line in verdict(summary, found.steps))
    source = f"`{found.command}` ({found.cores} cores, {found.date}, [{RESULTS}/{name}.json](results/{name}.json)):"
    return f"<!-- study {name} -->\n{source}\n\n{to_markdown(summary)}\n{lines}\n<!-- end of study {name} -->"


def main() -> None:
    """Rewrite all pages."""
    try:
        for name in PAGES:
            page = ROOT / name
            page.write_text(generated(page.read_text("utf-8"), ROOT / RESULTS), encoding="utf-8")
    except InvalidStudy as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
