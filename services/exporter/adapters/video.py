"""Encodes a segment's pictures as an H.264 video, scaled by a whole number so that pixels stay sharp."""

import tempfile
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import av
import numpy as np
from numpy.typing import NDArray

from services.exporter.adapters.strips import Strips, enlarged

WIDTH, HEIGHT = 160, 144  # of a Game Boy screen, pixels
FRAMES_PER_SECOND = Fraction(597_275, 10_000)  # of a Game Boy
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
        strips = Strips(caption, notes, WIDTH * scale)
        _write(path, pictures, frame_skip, scale, strips)
        return path.read_bytes()


def step_ms(frame_skip: int) -> int:
    """Milliseconds of play that one step takes, at the speed of the game."""
    return round(1000 * frame_skip / FRAMES_PER_SECOND)


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
            large = np.ascontiguousarray(enlarged(picture, self._scale))
            frame = av.VideoFrame.from_ndarray(large, format="rgb24")
            self._container.mux(self._stream.encode(frame))

    def _open(self, frame_skip: int) -> None:
        self._partial.touch()  # where that is impossible, the error names the file; the encoder's would not
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


def _write(path: Path, pictures: Iterable[NDArray[np.uint8]], frame_skip: int, scale: int, strips: Strips) -> None:
    with av.open(str(path), "w", options={"movflags": "+faststart"}) as container:
        stream = _stream(container, frame_skip, WIDTH * scale, HEIGHT * scale + strips.height)
        for number, picture in enumerate(pictures):
            whole = np.ascontiguousarray(strips.below(enlarged(picture, scale), number))
            frame = av.VideoFrame.from_ndarray(whole, format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
