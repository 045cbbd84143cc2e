"""Pictures become palette PNG and back, exactly."""

import io

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from shared.game.recording.png import palette_png

SHAPE = (144, 160)


def picture(colours: int, step: int) -> NDArray[np.uint32]:
    """Random pixels of so many colours whose channels are multiples of `step`."""
    rng = np.random.default_rng(colours)
    palette = rng.integers(0, 256 // step, (colours, 3)) * step
    red, green, blue = palette[rng.integers(0, colours, SHAPE)].transpose(2, 0, 1)
    packed: NDArray[np.uint32] = (red | green << 8 | blue << 16 | 0xFF << 24).astype(np.uint32)
    return packed


def decoded(png: bytes) -> NDArray[np.uint32]:
    """Packed RGBA pixels, as the emulator gives them."""
    red, green, blue = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(np.uint32).transpose(2, 0, 1)
    packed: NDArray[np.uint32] = red | green << 8 | blue << 16 | np.uint32(0xFF << 24)
    return packed


@pytest.mark.parametrize("step", [8, 1], ids=["console colours", "finer colours"])
@pytest.mark.parametrize("colours", [1, 30, 256])
def test_a_picture_survives_exactly(colours: int, step: int) -> None:
    pixels = picture(colours, step)
    assert np.array_equal(decoded(palette_png(pixels)), pixels)


def test_a_larger_scale_repeats_pixels() -> None:
    pixels = picture(30, 8)
    assert np.array_equal(decoded(palette_png(pixels, scale=2))[::2, ::2], pixels)


def test_too_many_colours_are_refused_with_their_number() -> None:
    with pytest.raises(ValueError, match=r"a picture with \d{3,} colours does not fit a palette of 256"):
        palette_png(picture(2_000, 8))
