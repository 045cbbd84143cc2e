"""Draws the text that stands below the pictures of a video."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

LINE_HEIGHT, MARGIN = 16, 6
INK, PAPER = (236, 236, 220), (18, 22, 20)
FONT = ImageFont.load_default()


class Strips:
    """What stands below each picture: the caption, and the picture's own note. All have the height of the tallest."""

    def __init__(self, caption: Sequence[str], notes: Sequence[str], width: int) -> None:
        self._notes, self._caption = notes, _strip(_lines(caption, width), width)
        lines = {note: _lines(note.splitlines(), width) for note in dict.fromkeys(notes)}
        rows = max(map(len, lines.values()), default=0)
        self._drawn = {note: np.vstack((self._caption, _strip(own, width, rows))) for note, own in lines.items()}

    def of(self, picture: int) -> NDArray[np.uint8]:
        """The strip below a picture, by its number."""
        return self._drawn[self._notes[picture]] if self._notes else self._caption

    def below(self, large: NDArray[np.uint8], picture: int) -> NDArray[np.uint8]:
        """An enlarged picture with its strip, (height, width, 3)."""
        return np.vstack((large, self.of(picture)))

    @property
    def height(self) -> int:
        """Pixels; the same for all pictures."""
        return int(self.of(0).shape[0])


def enlarged(picture: NDArray[np.uint8], scale: int) -> NDArray[np.uint8]:
    """The picture (height, width, 3) with each pixel `scale` times as large."""
    return picture.repeat(scale, axis=0).repeat(scale, axis=1)


def _strip(lines: Sequence[str], width: int, rows: int = 0) -> NDArray[np.uint8]:
    """Lines as a picture (height, width, 3) of at least `rows` rows; the height is even, as yuv420p requires, or 0."""
    rows = max(rows, len(lines))
    if not rows:
        return np.zeros((0, width, 3), np.uint8)
    image = Image.new("RGB", (width, 2 * MARGIN + LINE_HEIGHT * rows), PAPER)
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        draw.text((MARGIN, MARGIN + number * LINE_HEIGHT), line, fill=INK, font=FONT)
    return np.asarray(image, np.uint8)


def _lines(texts: Sequence[str], width: int) -> list[str]:
    """The texts, broken into lines that fit between the margins of a strip."""
    return [line for text in texts for line in _wrapped(text, width - 2 * MARGIN)]


def _wrapped(text: str, width: int, gaps: Sequence[str] = ("  ", " ", "")) -> list[str]:
    """Break the text between figures (two spaces), a figure that is too wide between words, a word between letters."""
    gap, *finer = gaps
    lines = [""]
    for part in text.split(gap) if gap else text:
        joined = gap.join(filter(None, (lines[-1], part)))
        if FONT.getlength(joined) <= width:
            lines[-1] = joined
        else:
            lines.extend(_wrapped(part, width, finer) if finer else [part])
    return [line for line in lines if line]
