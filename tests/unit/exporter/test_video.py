"""The video has every step, at the game's speed, with sharp pixels and a readable caption."""

import io
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from services.exporter.adapters.video import VideoFile, encode_mp4, step_ms


def checkerboard(step: int) -> NDArray[np.uint8]:
    rows, columns = np.indices((144, 160))
    bright = ((rows // 8 + columns // 8 + step) % 2).astype(np.uint8) * 200
    return np.dstack((bright, bright, bright))


def decode(video: bytes) -> tuple[list[NDArray[np.uint8]], float]:
    with av.open(io.BytesIO(video), "r") as container:
        stream = container.streams.video[0]
        frames = [np.asarray(frame.to_ndarray(format="rgb24"), np.uint8) for frame in container.decode(stream)]
        return frames, float(stream.average_rate or 0)


@pytest.mark.parametrize("frame_skip", [1, 4, 8, 24, 40, 60])
def test_every_step_is_in_the_video_at_the_speed_of_the_game(frame_skip: int) -> None:
    frames, rate = decode(encode_mp4([checkerboard(s) for s in range(30)], frame_skip=frame_skip))
    assert len(frames) == 30
    assert rate == pytest.approx(59.7275 / frame_skip, rel=1e-3)


def test_a_step_takes_as_long_as_its_frames_of_the_game() -> None:
    assert [step_ms(frame_skip) for frame_skip in (4, 24)] == [67, 402]  # 59.7275 frames a second


def test_a_browser_plays_the_video_before_its_download_ends(tmp_path: Path) -> None:
    with VideoFile(tmp_path / "joined.mp4", scale=1) as joined:
        joined.add([checkerboard(0)] * 2, frame_skip=4)
    for video in (encode_mp4([checkerboard(0)] * 2, frame_skip=4), (tmp_path / "joined.mp4").read_bytes()):
        assert video.index(b"moov") < video.index(b"mdat"), "the index comes before the pictures"
        with av.open(io.BytesIO(video), "r") as container:
            assert container.streams.video[0].pix_fmt == "yuv420p"


def test_an_interrupted_video_leaves_the_previous_one_intact(tmp_path: Path) -> None:
    path = tmp_path / "best.mp4"
    path.write_bytes(b"the video of yesterday")

    def interrupted() -> Iterator[NDArray[np.uint8]]:
        yield checkerboard(0)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), VideoFile(path, scale=1) as video:
        video.add(interrupted(), frame_skip=4)
    assert path.read_bytes() == b"the video of yesterday"
    assert list(tmp_path.iterdir()) == [path]


def test_pixels_are_scaled_by_whole_numbers_and_stay_sharp() -> None:
    frames, _ = decode(encode_mp4([checkerboard(0)] * 4, frame_skip=4, scale=2))
    expected = checkerboard(0).repeat(2, axis=0).repeat(2, axis=1)
    assert frames[0].shape == expected.shape
    assert np.abs(frames[0].astype(int) - expected).mean() < 8


def test_the_caption_is_below_the_picture() -> None:
    frames, _ = decode(encode_mp4([checkerboard(0)] * 2, frame_skip=4, scale=2, caption=["one", "two"]))
    assert frames[0].shape == (288 + 44, 320, 3)
    assert frames[0][288:].max() > 150  # ink


LONG = "judged 0.56:  progress 0.50  dialog 0.25  puzzle 0.75  novelty 1.00  efficiency 0.90"


@pytest.mark.parametrize("line", [LONG, "a-run-whose-name-is-as-long-as-a-name-of-a-run-may-be"])
@pytest.mark.parametrize("scale", [1, 2, 3])
def test_a_caption_line_wider_than_the_video_wraps(scale: int, line: str) -> None:
    wide = encode_mp4([checkerboard(0)] * 2, frame_skip=4, scale=6, caption=[line])
    narrow = encode_mp4([checkerboard(0)] * 2, frame_skip=4, scale=scale, caption=[line])
    whole, cut = decode(wide)[0][0][144 * 6 :], decode(narrow)[0][0][144 * scale :]
    assert cut[:, -6:].max() < 100, "no text in the margin"
    ink = [(strip.max(axis=2) > 150).sum() for strip in (whole, cut)]
    assert ink[1] == pytest.approx(ink[0], rel=0.15), "no text is missing"


def test_each_picture_has_its_own_note() -> None:
    notes = ["", "acts: policy", "acts: planner", "acts: policy"]
    frames, _ = decode(encode_mp4([checkerboard(0)] * 4, frame_skip=4, scale=2, caption=["one"], notes=notes))
    assert frames[0].shape == (288 + 28 + 28, 320, 3)
    below = [frame[288 + 28 :].astype(int) for frame in frames]
    ink = [(strip.max(axis=2) > 150).sum() for strip in below]
    assert ink[0] == 0
    assert min(ink[1:]) > 20
    same, other = (np.abs(below[1] - below[place]).mean() for place in (3, 2))
    assert same < 0.5 < 1 < other


def test_a_note_of_several_lines_wraps_between_words_and_keeps_one_size() -> None:
    notes = ["short", "steps 0-299\n" + "the hero found nothing " * 3, ""]
    frames, _ = decode(encode_mp4([checkerboard(0)] * 3, frame_skip=4, scale=1, notes=notes))
    heights = {frame.shape[0] for frame in frames}
    assert heights == {144 + 12 + 16 * 4}, "a line of steps and three of words"
    strip = frames[1][144:].max(axis=2) > 150
    assert strip[:, :-6].any()
    assert not strip[:, -6:].any(), "no text in the margin"
