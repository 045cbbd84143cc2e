"""Reassembles the dialog texts of a segment from the line that the game prints at each step."""

from collections.abc import Iterator, Sequence

from services.judge.domain.facts.states import StepState

MAX_TEXT = 300  # characters of one text; the games' longest texts are far shorter


def texts_shown(states: Sequence[StepState]) -> Iterator[tuple[int, str]]:
    """Yield (step, whole text) for each open text box. A growing line counts once, in its longest form."""
    begun, number, lines = 0, None, list[str]()
    for now in states:
        if lines and (now.line is None or now.text != number):
            yield begun, _joined(lines)
            lines = []
        if now.line:  # empty while the box is cleared for the next line
            begun, number = (begun, number) if lines else (now.step, now.text)
            _add(lines, now.line)
    if lines:
        yield begun, _joined(lines)


def _add(lines: list[str], line: str) -> None:
    """Append a line. A grown line replaces its own beginning; a repeated line is skipped."""
    if lines and line.startswith(lines[-1]):
        lines[-1] = line
    elif not lines or not lines[-1].startswith(line):
        lines.append(line)


def _joined(lines: Sequence[str]) -> str:
    return " ".join(lines)[:MAX_TEXT]
