"""What curiosity sees of obs/v1, by version: places, lasting possessions and the state of puzzles.

Curiosity (RND) pays for combinations of features that it has rarely seen. It must not see what changes by itself or
with every button: clocks, health, the last action, where enemies walk. Those would be novel without end.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from shared.game.observation.layout import BLOCKS, INDEX, VERSION

VIEW: Final = "novelty/v1"

_BLOCKS: Final = ("room", "dungeon", "season", "keys")
_FEATURES: Final = (
    ("x", "y", "swimming", "holding"),
    ("max_health", "heart_pieces", "sword", "shield", "feather", "bracelet", "flippers", "season_rod", "essences"),
    ("treasures", "dialog", "dialog_choosing"),
    ("enemies_left", "buttons_down", "levers", "torches", "shutters_open", "solved"),
)


def _view() -> tuple[str, ...]:
    blocks = {feature.name for block in BLOCKS for feature in block if feature.block in _BLOCKS}
    return tuple(sorted(blocks | {name for names in _FEATURES for name in names}, key=INDEX.__getitem__))


VIEWS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({VIEW: _view(), VERSION: tuple(INDEX)})
"""Names of features in the order of obs/v1, by the view's version. Runs older than 2026-11-23 see all of them."""


def columns(view: str) -> list[int]:
    """Indices in obs/v1 of what the view shows."""
    return [INDEX[name] for name in VIEWS[view]]
