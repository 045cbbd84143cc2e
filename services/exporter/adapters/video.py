"""Encodes a segment's pictures as H.264 for people to watch: integer-scaled, so that pixels stay pixels."""

import tempfile
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path

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
    pictures: Iterable[NDArray[np.uint8]], *, frame_skip: int, scale: int = 3, caption: Sequence[str] = ()
) -> bytes:
    """Return an MP4 of one picture a step, played at the speed of the game.

    `pictures` are uint8 arrays of shape (144, 160, 3), RGB. `caption` lines stand in a strip below the picture.
    """
    with tempfile.TemporaryDirectory() as folder:
        # A file, because putting the index first (for playing before the end is loaded) rewrites what was written.
        path = Path(folder, "video.mp4")
        _write(path, pictures, frame_skip, scale, _strip(caption, WIDTH * scale))
        return path.read_bytes()


def _write(
    path: Path, pictures: Iterable[NDArray[np.uint8]], frame_skip: int, scale: int, strip: NDArray[np.uint8]
) -> None:
    with av.open(str(path), "w", options={"movflags": "+faststart"}) as container:
        stream = container.add_stream("libx264", rate=FRAMES_PER_SECOND / frame_skip)
        stream.width, stream.height = WIDTH * scale, HEIGHT * scale + strip.shape[0]
        stream.pix_fmt = "yuv420p"  # the one format every player and browser shows
        stream.options = {"crf": QUALITY, "preset": "veryfast"}
        for picture in pictures:
            large = picture.repeat(scale, axis=0).repeat(scale, axis=1)
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(np.vstack((large, strip))), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def _strip(caption: Sequence[str], width: int) -> NDArray[np.uint8]:
    """The caption as a picture of even height, which yuv420p requires; of height 0 without caption."""
    if not caption:
        return np.zeros((0, width, 3), np.uint8)
    lines = [part for line in caption for part in _wrapped(line, width - 2 * MARGIN)]
    image = Image.new("RGB", (width, 2 * MARGIN + LINE_HEIGHT * len(lines)), PAPER)
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        draw.text((MARGIN, MARGIN + number * LINE_HEIGHT), line, fill=INK, font=FONT)
    return np.asarray(image, np.uint8)


def _wrapped(line: str, width: int) -> list[str]:
    """The line in parts that fit: broken between figures (two spaces), and within one only where it must be."""
    parts = [""]
    for figure in line.split("  "):
        joined = f"{parts[-1]}  {figure}".strip()
        if FONT.getlength(joined) <= width:
            parts[-1] = joined
        else:
            parts.extend(_cut(figure, width))
    return [part for part in parts if part]


def _cut(text: str, width: int) -> list[str]:
    parts = [""]
    for letter in text:
        if FONT.getlength(parts[-1] + letter) > width:
            parts.append("")
        parts[-1] += letter
    return parts
