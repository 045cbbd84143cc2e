"""Encodes a segment's pictures as an H.264 video, scaled by a whole number so that pixels stay sharp."""

import tempfile
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT = 160, 144  # of a Game Boy screen, pixels
FRAMES_PER_SECOND = Fraction(597_275, 10_000)  # of a Game Boy
LINE_HEIGHT, MARGIN = 16, 6
INK, PAPER = (236, 236, 220), (18, 22, 20)
FONT = ImageFont.load_default()
QUALITY = "20"  # constant rate factor: below about 24 the edges of pixels stay sharp


def encode_mp4(
    pictures: Iterable[NDArray[np.uint8]],
    *,
    frame_skip: int,
    scale: int = 3,
    caption: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> bytes:
    """Return an MP4 with one picture per step, at the speed of the game.

    `pictures` are uint8 arrays of shape (144, 160, 3), RGB. The `caption` lines form a strip below the picture.
    `notes` has a text for every picture, e.g. who acted, shown below the caption while that picture is; or it is empty.
    """
    with tempfile.TemporaryDirectory() as folder:
        # A seekable file: +faststart moves the index to the front, so that playback starts before the download ends.
        path = Path(folder, "video.mp4")
        strips = _Strips(caption, notes, WIDTH * scale)
        _write(path, pictures, frame_skip, scale, strips)
        return path.read_bytes()


class VideoFile:
    """One MP4 file from the pictures of several segments. It appears under its name only when it is complete."""

    def __init__(self, path: Path, scale: int) -> None:
        self._path, self._partial, self._scale = path, path.with_name(path.name + ".partial"), scale
        self._container: Any = None
        self._stream: Any = None

    def add(self, pictures: Iterable[NDArray[np.uint8]], frame_skip: int) -> None:
        """Append pictures, uint8 (144, 160, 3) RGB, one per step."""
        for picture in pictures:
            if self._container is None:
                self._open(frame_skip)
            large = picture.repeat(self._scale, axis=0).repeat(self._scale, axis=1)
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(large), format="rgb24")
            self._container.mux(self._stream.encode(frame))

    def _open(self, frame_skip: int) -> None:
        self._container = av.open(str(self._partial), "w", format="mp4", options={"movflags": "+faststart"})
        self._stream = _stream(self._container, frame_skip, WIDTH * self._scale, HEIGHT * self._scale)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._container is None:
            return
        try:
            self._container.mux(self._stream.encode())
            self._container.close()
            if kind is None:
                self._partial.replace(self._path)
        finally:
            self._partial.unlink(missing_ok=True)  # missing after a successful replace


def _stream(container: Any, frame_skip: int, width: int, height: int) -> Any:
    stream = container.add_stream("libx264", rate=FRAMES_PER_SECOND / frame_skip)
    stream.width, stream.height = width, height
    stream.pix_fmt = "yuv420p"  # the pixel format that every player and browser supports
    stream.options = {"crf": QUALITY, "preset": "veryfast"}
    return stream


class _Strips:
    """What stands below each picture: the caption, and the picture's own note. All have the height of the tallest."""

    def __init__(self, caption: Sequence[str], notes: Sequence[str], width: int) -> None:
        self._notes, self._caption = notes, _strip(_lines(caption, width), width)
        lines = {note: _lines(note.splitlines(), width) for note in dict.fromkeys(notes)}
        rows = max(map(len, lines.values()), default=0)
        self._drawn = {note: np.vstack((self._caption, _strip(own, width, rows))) for note, own in lines.items()}

    def of(self, picture: int) -> NDArray[np.uint8]:
        """The strip below a picture, by its number."""
        return self._drawn[self._notes[picture]] if self._notes else self._caption

    @property
    def height(self) -> int:
        """Pixels; the same for all pictures."""
        return int(self.of(0).shape[0])


def _write(path: Path, pictures: Iterable[NDArray[np.uint8]], frame_skip: int, scale: int, strips: _Strips) -> None:
    with av.open(str(path), "w", options={"movflags": "+faststart"}) as container:
        stream = _stream(container, frame_skip, WIDTH * scale, HEIGHT * scale + strips.height)
        for number, picture in enumerate(pictures):
            large = picture.repeat(scale, axis=0).repeat(scale, axis=1)
            whole = np.ascontiguousarray(np.vstack((large, strips.of(number))))
            frame = av.VideoFrame.from_ndarray(whole, format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


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
