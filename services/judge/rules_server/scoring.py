"""The rules: from the totals of one clip to a number from 0 to 5 per dimension, along the rubric's anchors."""

from collections.abc import Callable
from dataclasses import dataclass

from services.judge.rules_server.facts_parser import Totals, totals


@dataclass(frozen=True, slots=True)
class ClipTotals:
    """The totals that the rules use, in steps or counts. An unknown total counts as 0."""

    steps: int
    rooms: int
    new_rooms: int
    tiles: int
    stale: int
    gains: int
    taken: int
    essences: int
    done: int
    keys_found: int
    texts: int
    menu: int
    hurt: int
    deaths: int

    @property
    def clear_steps(self) -> int:
        """Undisputed steps towards the end of the game."""
        return self.gains + self.keys_found + self.done


def clip_totals(text: str) -> ClipTotals:
    """Parse the totals of a clip from the prompt's text."""
    found = totals(text)
    rooms, new = _sum(found, "rooms visited"), found.get("rooms never seen before")
    return ClipTotals(
        steps=max(1, _sum(found, "steps")),
        rooms=rooms,
        # The game does not report known rooms: every room but the first may be new.
        new_rooms=max(0, rooms - 1) if new is None else new,
        tiles=_sum(found, "tiles visited"),
        stale=_sum(found, "longest time without a new tile"),
        gains=_sum(found, "items obtained", "heart containers obtained", "dungeons entered"),
        taken=_sum(found, "treasures taken"),  # its content counts as an item, unless it is money
        essences=_sum(found, "essences obtained"),
        # A lock and its door count once.
        done=max(_sum(found, "small keys used"), _sum(found, "doors opened for good"))
        + _sum(found, "puzzles or tasks solved", "bosses beaten", "payments made"),
        keys_found=_sum(found, "small keys found"),
        texts=_sum(found, "different texts shown"),
        menu=_sum(found, "steps in a menu"),
        hurt=_sum(found, "times hurt"),
        deaths=_sum(found, "deaths"),
    )


def _sum(found: Totals, *names: str) -> int:
    return sum(found.get(name) or 0 for name in names)


def progress(clip: ClipTotals) -> float:
    """Score the clear steps; without any, score new ground. Walking in known rooms scores 0."""
    if clip.essences or clip.clear_steps >= 4:
        return 5
    if clip.clear_steps:
        return 3 if clip.clear_steps == 1 else 4
    if clip.deaths:
        return 0
    if clip.texts or clip.new_rooms >= 3:
        return 2
    return 1 if clip.new_rooms or clip.taken else 0


def dialog(clip: ClipTotals) -> float:
    """Score the different texts read; clear steps show that the player acted on them."""
    read = {0: 0, 1: 2, 2: 3}.get(clip.texts, 4)
    return min(5, read + (1 if clip.texts and clip.clear_steps else 0))


def puzzle(clip: ClipTotals) -> float:
    """Score what was opened, paid or solved; a key or a chest alone is a part of a puzzle."""
    if clip.done:
        return min(5, 2 + clip.done)
    return 2 if clip.keys_found or clip.taken else 0


def novelty(clip: ClipTotals) -> float:
    """Score new rooms and new things."""
    rooms = 0 if clip.tiles < 8 else 1
    for least, value in ((1, 2), (2, 3), (4, 4), (6, 5)):
        if clip.new_rooms >= least:
            rooms = value
    return min(5, rooms + (1 if clip.clear_steps >= 2 else 0))


def efficiency(clip: ClipTotals) -> float:
    """Score the share of the clip with something new, minus harm."""
    wasted = min(1.0, (clip.stale + clip.menu) / clip.steps)
    value = 5 * (1 - wasted) * min(1.0, 8 * clip.tiles / clip.steps)
    value -= 0.5 * clip.hurt
    return max(0.0, min(value, 1.0) if clip.deaths else value)


RULES: dict[str, Callable[[ClipTotals], float]] = {
    "progress": progress,
    "dialog": dialog,
    "puzzle": puzzle,
    "novelty": novelty,
    "efficiency": efficiency,
}


def reason(clip: ClipTotals) -> str:
    """Return one sentence with the facts that counted."""
    return (
        f"{clip.rooms} rooms, {clip.clear_steps} clear steps, {clip.texts} texts, "
        f"{clip.hurt} times hurt, {clip.deaths} deaths in {clip.steps} steps"
    )
