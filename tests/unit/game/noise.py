"""Memory of games that never were, for tests that must hold whatever a game's memory holds."""

import numpy as np
from hypothesis import strategies as st

from shared.game.decoding.objects import PAGE, PAGES
from shared.game.ram import offsets, variables
from shared.game.ram.table import IMAGE_SIZE

# What the next moment differs in: everything, what turns often (a push, a text, a sound), or only what moves.
_ALL = (slice(0, IMAGE_SIZE),)
_OFTEN = (
    slice(offsets.PUSH_COUNTER, offsets.PUSH_COUNTER + 1),
    slice(offsets.TEXT_LINE, offsets.TEXT_LINE + 16),
    slice(offsets.SOUND_QUEUE, offsets.SOUND_QUEUE + 16),
)
_MOVING = (slice(PAGES, PAGES + 0x10), slice(PAGES + PAGE + 0x02, PAGES + PAGE + 0x10))


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


@st.composite
def courses(draw: st.DrawFn) -> list[bytes]:
    """Moments one after the other: most are the one before with a little changed, as in a game."""
    moments = [draw(images())]
    for parts in draw(st.lists(st.sampled_from((_ALL, _OFTEN, _MOVING, ())), max_size=5)):
        other, moment = draw(images()), bytearray(moments[-1])
        for part in parts:
            moment[part] = other[part]
        moments.append(bytes(moment))
    return moments
