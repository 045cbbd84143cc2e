"""The clips of the worked examples, with their votes: each level of progress, and both ends of the other scales."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from services.judge.domain.facts.timeline import totals_section


@dataclass(frozen=True, slots=True)
class ExampleClip:
    """A clip's facts, its votes in the order of the rubric's dimensions, and the reason for them."""

    totals: Mapping[str, int]
    timeline: tuple[str, ...]
    votes: tuple[int, int, int, int, int]
    """Progress, dialog, puzzle, novelty, efficiency."""
    reason: str

    @property
    def facts(self) -> str:
        """Short facts without their first lines, because an example costs every call some time."""
        return totals_section(self.totals.items(), short=True) + "".join(f"{line}\n" for line in self.timeline)


CLIPS: Final = (
    ExampleClip(
        {"steps": 300, "rooms visited": 2, "tiles visited": 24, "longest time without a new tile": 120},
        (
            "step 60: entered room 0:04 (overworld), known from before this clip",
            "step 141: went back to room 0:03 (overworld)",
        ),
        (0, 0, 0, 1, 0),
        "walked in two known rooms and gained nothing",
    ),
    ExampleClip(
        {
            "steps": 300, "rooms visited": 6, "rooms never seen before": 5, "tiles visited": 61,
            "longest time without a new tile": 35, "items obtained": 1, "treasures taken": 1, "dungeons entered": 1,
            "different texts shown": 1,
        },
        (
            "step 14: entered room 0:51 (overworld), never seen before",
            "step 98: took the treasure of this room",
            'step 99: obtained "bombs"',
            'step 100: the game showed the text "You got bombs!"',
            "step 201: entered room 4:12 (dungeon), never seen before",
            "step 202: entered a dungeon",
        ),
        (4, 2, 1, 4, 5),
        "two clear steps: obtained bombs and entered a dungeon",
    ),
    ExampleClip(
        {
            "steps": 300, "rooms visited": 5, "rooms never seen before": 4, "tiles visited": 57,
            "longest time without a new tile": 44, "treasures taken": 1, "times hurt": 2,
        },
        (
            "step 20: entered room 0:21 (overworld), never seen before",
            "step 81: lost 2 quarter hearts",
            "step 133: took the treasure of this room",
            "step 133: gained 5 rupees",
            "step 204: entered room 0:32 (overworld), never seen before",
        ),
        (2, 0, 0, 3, 3),
        "four new rooms and 5 rupees, no clear step",
    ),
    ExampleClip(
        {
            "steps": 300, "rooms visited": 2, "rooms never seen before": 1, "tiles visited": 33,
            "longest time without a new tile": 51, "treasures taken": 1, "small keys found": 1, "small keys used": 1,
            "doors opened for good": 1, "puzzles or tasks solved": 2, "different texts shown": 1,
        },
        (
            "step 9: a block was pushed",
            "step 40: the game confirmed a solved puzzle or task",
            "step 77: found a small key (now 1)",
            "step 190: a door was opened for good",
            "step 190: used a small key",
            "step 204: entered room 4:16 (dungeon), never seen before",
            "step 260: the game confirmed a solved puzzle or task",
        ),
        (5, 2, 5, 2, 4),
        "four clear steps: solved two tasks, found a key, opened a door with it",
    ),
    ExampleClip(
        {
            "steps": 300, "rooms visited": 3, "rooms never seen before": 1, "tiles visited": 29,
            "longest time without a new tile": 83, "times hurt": 1,
        },
        (
            "step 31: entered room 0:10 (overworld), never seen before",
            "step 62: went back to room 0:11 (overworld)",
            "step 100: a bush was cut",
            "step 104: gained 1 rupees",
        ),
        (1, 0, 0, 2, 1),
        "one new room and a rupee",
    ),
    ExampleClip(
        {
            "steps": 300, "rooms visited": 3, "rooms never seen before": 2, "tiles visited": 40,
            "longest time without a new tile": 66, "items obtained": 1, "different texts shown": 2,
        },
        (
            "step 33: entered room 0:12 (overworld), never seen before",
            'step 90: the game showed the text "Take this."',
            'step 110: obtained "sword"',
            'step 111: the game showed the text "You got the sword!"',
        ),
        (3, 4, 0, 3, 3),
        "one clear step: spoke to somebody who gave the sword",
    ),
    ExampleClip(
        {
            "steps": 12, "rooms visited": 1, "tiles visited": 4, "longest time without a new tile": 3,
            "treasures taken": 1, "essences obtained": 1,
        },
        ("step 11: obtained an essence", "step 11: took the treasure of this room"),
        (5, 0, 1, 1, 5),
        "obtained an essence",
    ),
    ExampleClip(
        {
            "steps": 170, "rooms visited": 2, "tiles visited": 21, "longest time without a new tile": 60,
            "times hurt": 4, "deaths": 1,
        },
        (
            "step 20: lost 2 quarter hearts",
            "step 41: an enemy was defeated",
            "step 66: entered room 4:04 (dungeon), known from before this clip",
            "step 169: lost 2 quarter hearts",
        ),
        (0, 0, 0, 1, 0),
        "died in known rooms",
    ),
)  # fmt: skip
