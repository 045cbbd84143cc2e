"""Oracle of Seasons: each milestone is one bit of the save block, at the address that the disassembly gives.

The addresses stand here as numbers, beside those of ram.tsv: a wrong row of the table would otherwise move both.
"""

import pytest

from shared.game.games.oracle import MILESTONES, ORACLE_MD5
from shared.game.ram.table import IMAGE_SIZE

FIXED = 0xC000  # an image begins with this address
BITS = {
    "intro done": (0xC6CB, 2),
    "sword": (0xC692, 5),
    "gnarled key given": (0xC6CD, 0),
    "gnarled key held": (0xC69A, 2),
    "first dungeon unlocked": (0xC796, 7),
    "first dungeon entered": (0xC91C, 4),
    "first miniboss beaten": (0xC90B, 7),
    "first boss beaten": (0xC912, 7),
    **{f"essence {number}": (0xC6BB, number - 1) for number in range(1, 9)},
}


def test_the_image_is_the_american_one() -> None:
    """The digest that the disassembly names for the file that it rebuilds."""
    assert ORACLE_MD5 == "f2dc6c4e093e4f8c6cbea80e8dbd62cb"


@pytest.mark.parametrize("name", BITS)
def test_a_milestone_is_one_bit_of_the_save_block(name: str) -> None:
    address, bit = BITS[name]
    image = bytearray(IMAGE_SIZE)
    image[address - FIXED] = 1 << bit
    assert [one.name for one in MILESTONES if one.reached(bytes(image))] == [name]
    image[address - FIXED] ^= 0xFF
    assert not next(one for one in MILESTONES if one.name == name).reached(bytes(image))


def test_every_milestone_has_its_bit() -> None:
    assert [one.name for one in MILESTONES] == [*BITS]
