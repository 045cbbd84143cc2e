"""The grammar of macros: what is written is read back, and nothing outside of it is a macro."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.executor.macros import (
    ITEMS,
    MAX_LENGTH,
    Interact,
    Macro,
    MacroError,
    MoveTo,
    PushBlock,
    UseItem,
    parse_macro,
)

TILES = st.tuples(st.integers(-1, 15), st.integers(-1, 11))
DIRECTIONS = st.integers(0, 3)
MACROS = st.one_of(
    st.builds(MoveTo, TILES),
    st.builds(PushBlock, TILES, DIRECTIONS),
    st.builds(UseItem, st.sampled_from(sorted(ITEMS.values())), st.none() | DIRECTIONS),
    st.builds(Interact, st.none() | TILES, st.none() | st.integers(0, 1)),
)


@given(MACROS)
def test_every_macro_is_read_as_it_was_written(macro: Macro) -> None:
    assert parse_macro(str(macro)) == macro


@pytest.mark.parametrize(
    "text",
    [
        "",
        "MOVE_TO",
        "MOVE_TO 3",
        "MOVE_TO 3,4 ",
        "move_to 3,4",
        "MOVE_TO 3,4; USE_ITEM sword",
        "MOVE_TO 3,4\nUSE_ITEM sword",
        "MOVE_TO -2,4",
        "MOVE_TO 300,4",
        "MOVE_TO \u0663,4",
        "PUSH_BLOCK 3,4",
        "PUSH_BLOCK 3,4 north",
        "USE_ITEM",
        "USE_ITEM excalibur",
        "USE_ITEM sword sideways",
        "INTERACT maybe",
        "SAVE",
        "__import__('os')",
        "INTERACT " + "1" * MAX_LENGTH,
    ],
)
def test_other_text_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(MacroError, match=r"is not a macro|is not an item|at most 60 characters"):
        parse_macro(text)


@given(st.text(max_size=80))
def test_random_text_is_refused_or_reads_back_equal(text: str) -> None:
    try:
        macro = parse_macro(text)
    except MacroError:
        return
    assert parse_macro(str(macro)) == macro
