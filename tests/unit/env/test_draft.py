"""A segment that was gathered while its game was played says the same of each moment as the game did."""

from mmap import mmap

from hypothesis import given

from services.trainer.env.draft import Draft
from services.trainer.env.writer import Gathered
from shared.game.decoding.decoder import Decoder
from shared.game.ram import capabilities
from shared.game.recording.state_rows import StateRowWriter
from tests.unit.game.noise import courses

EVERYTHING = capabilities.every()


def gathered(draft: Draft, moments: list[bytes]) -> list[str]:
    """Gather the moments as a player does, and say what each of them was when it was played."""
    decoder = Decoder(EVERYTHING)
    decoder.on_static_change = draft.turn
    lines = []
    for image in moments:
        lines.append(StateRowWriter().line(decoder.decode(image), 0, 0))
        draft.moved(image[decoder.dynamic])
    return lines


def read(draft: Draft) -> list[str]:
    """What the writer reads from it."""
    moved, busy, quiet, turns, changes, seen = (bytes(part) for part in draft.parts())
    decoder = Decoder(EVERYTHING)
    segment = Gathered(mmap(-1, 1), b"", b"", moved, busy, quiet, turns, changes, seen, b"", b"", b"")
    return [StateRowWriter().line(decoder.decode(image), 0, 0) for image in segment.images()]


@given(courses())
def test_what_changed_is_all_that_a_segment_must_keep(moments: list[bytes]) -> None:
    draft = Draft()

    assert gathered(draft, moments) == read(draft)


@given(courses(), courses())
def test_a_shorter_segment_shows_nothing_of_the_longer_one_before(first: list[bytes], second: list[bytes]) -> None:
    draft = Draft()
    gathered(draft, [*first, *first])
    draft.empty()

    assert gathered(draft, second) == read(draft)
