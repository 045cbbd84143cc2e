"""Random RAM images, for tests that must hold for any memory content."""

import numpy as np
from hypothesis import strategies as st

from shared.game.ram import variables
from shared.game.ram.table import IMAGE_SIZE


@st.composite
def images(draw: st.DrawFn) -> bytes:
    """Memory of noise, with a few places set to any value: noise alone would seldom look like a running game."""
    noise = np.random.default_rng(draw(st.integers(0, 2**32))).integers(0, 256, IMAGE_SIZE, np.uint8)
    if draw(st.booleans()):
        noise[:] = draw(st.sampled_from((0, 255)))
    offsets = st.sampled_from([entry.offset for entry in variables.entries().values() if entry.bank != "slot"])
    for offset, value in draw(st.dictionaries(offsets, st.integers(0, 255), max_size=40)).items():
        noise[offset] = value
    return noise.tobytes()
