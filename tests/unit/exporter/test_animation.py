"""A play becomes an animated GIF."""

import io

import numpy as np
import pytest
from PIL import Image

from services.exporter.adapters import animation
from services.exporter.adapters.animation import encode_gif
from shared.errors import Permanent

RED, BLUE = (248, 0, 0), (0, 0, 248)


def picture(colour: tuple[int, int, int]) -> np.ndarray:
    return np.full((144, 160, 3), colour, np.uint8)


def test_each_picture_is_shown_as_long_and_the_gif_repeats() -> None:
    with Image.open(io.BytesIO(encode_gif([picture(RED), picture(BLUE), picture(RED)], picture_ms=70))) as found:
        assert (found.n_frames, found.size, found.info["loop"]) == (3, (320, 288), 0)  # type: ignore[attr-defined]
        shown = []
        for number in range(3):
            found.seek(number)
            assert found.info["duration"] == 70
            shown.append(found.convert("RGB").getpixel((160, 144)))
    assert shown == [RED, BLUE, RED]


def test_the_note_of_each_picture_stands_below_it() -> None:
    pictures = [picture(RED), picture(RED)]
    with Image.open(io.BytesIO(encode_gif(pictures, picture_ms=70, notes=["judged 0.41", "judged 0.87"]))) as found:
        assert found.height > 288
        strips = []
        for number in range(2):
            found.seek(number)
            strips.append(np.asarray(found.convert("RGB"))[288:])
    first, second = strips
    assert not np.array_equal(first, second)


def test_too_many_pictures_are_refused_before_memory_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(animation, "MAX_PICTURES", 2)
    with pytest.raises(Permanent, match="a GIF of more than 2 pictures needs too much memory: raise --speed"):
        encode_gif([picture(RED)] * 3, picture_ms=70)
