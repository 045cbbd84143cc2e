"""Parses the facts in a prompt's text. It reads the TOTALS block only, which quoted game text cannot forge.

Every line of quoted text begins with `step N:`, and the judge escapes line breaks inside quotes.
"""

import re
from collections.abc import Mapping

_TOTAL = re.compile(r"^- ([a-z ]+): (\d+|unknown)$")
_CLIP = re.compile(r"^CLIP ([AB])$", re.MULTILINE)

Totals = Mapping[str, int | None]


def totals(text: str) -> Totals:
    """Return the totals of one clip, None for `unknown`. Empty if the text has no TOTALS block."""
    found: dict[str, int | None] = {}
    inside = False
    for line in text.splitlines():
        if line in ("TOTALS", "TIMELINE"):
            inside = line == "TOTALS"
            continue
        match = _TOTAL.match(line) if inside else None
        if match:
            found[match[1]] = None if match[2] == "unknown" else int(match[2])
    return found


def split_pair(text: str) -> tuple[str, str] | None:
    """Return the texts of clips A and B of a comparison, or None if the prompt has one clip."""
    marks = list(_CLIP.finditer(text))
    if [mark[1] for mark in marks] != ["A", "B"]:
        return None
    return text[marks[0].end() : marks[1].start()], text[marks[1].end() :]
