"""The rubric: the question of each dimension and the meaning of each vote from 0 to 5.

Anchors have the strongest influence on a judge's quality. They are data, versioned by the rubric's name, and never
depend on a segment. Their bytes are part of the prompt digest.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from shared.contracts.scores import DIMENSIONS, MAX_VOTE


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension: `anchors[v]` is the meaning of a vote of v."""

    name: str
    question: str
    anchors: tuple[str, str, str, str, str, str]


RUBRIC: Mapping[str, Dimension] = {
    dimension.name: dimension
    for dimension in (
        Dimension(
            "progress",
            "How much closer to finishing the game did the player get within this clip?",
            (
                "nothing was gained: the player stood still, walked in known rooms, or died",
                "hardly anything: one new room or a few rupees",
                "some ground: several new rooms, or a person found who gives advice",
                "one clear step: an item, a key, a paid toll, a solved task or an entered dungeon",
                "two or three clear steps",
                "four or more clear steps, or an essence",
            ),
        ),
        Dimension(
            "dialog",
            "How well did the player find people and signs, read what they say, and act on it?",
            (
                "no text was shown, or only the same text again and again",
                "text was shown by accident and led to nothing",
                "one useful text was read",
                "two useful texts were read, or one was followed by what it asks for",
                "several texts were read and at least one led to an item or an open way",
                "several people were spoken to and each piece of advice was acted on",
            ),
        ),
        Dimension(
            "puzzle",
            "How well did the player solve puzzles: switches, blocks, locked doors, shutters, tolls, chests?",
            (
                "no puzzle was touched",
                "a puzzle was near, but nothing was tried with a result",
                "one part was done: a key found, a block moved, a switch pressed",
                "one puzzle or task was solved",
                "two puzzles or tasks were solved",
                "three or more puzzles or tasks were solved",
            ),
        ),
        Dimension(
            "novelty",
            "How much was new in this clip: rooms, people, things, situations?",
            (
                "nothing: one place, the same picture throughout",
                "little: most of the time in the same room",
                "two rooms or one new thing",
                "three or four rooms, or several new things",
                "five or six rooms, or a new area",
                "seven or more rooms, or a dungeon and new things in it",
            ),
        ),
        Dimension(
            "efficiency",
            "How purposeful was the play: direct ways, no loops, no needless menus, no needless harm?",
            (
                "aimless: almost the whole clip without a new tile, in menus, or dying",
                "mostly wasted: long loops or long waits",
                "about half of the time was wasted",
                "mostly purposeful, with some detours or some harm",
                "purposeful, with hardly a detour",
                "direct from goal to goal without harm",
            ),
        ),
    )
}

DEFAULT_WEIGHTS: Mapping[str, float] = {
    "progress": 0.4,
    "dialog": 0.2,
    "puzzle": 0.2,
    "novelty": 0.1,
    "efficiency": 0.1,
}

assert tuple(RUBRIC) == DIMENSIONS
assert all(len(dimension.anchors) == MAX_VOTE + 1 for dimension in RUBRIC.values())


def rubric_text(dimensions: tuple[str, ...]) -> str:
    """Return the rubric text of some dimensions: a pure function of their names."""
    parts = []
    for name in dimensions:
        dimension = RUBRIC[name]
        anchors = "\n".join(f"  {vote} = {meaning}" for vote, meaning in enumerate(dimension.anchors))
        parts.append(f"{name}: {dimension.question}\n{anchors}\n")
    return "\n".join(parts)


def reply_schema(dimensions: tuple[str, ...], *, reason: bool = True) -> dict[str, object]:
    """Return the JSON Schema of one vote: the reason first, so that the numbers follow from it; flat for decoders."""
    votes: dict[str, object] = {name: {"type": "integer", "minimum": 0, "maximum": MAX_VOTE} for name in dimensions}
    first: dict[str, object] = {"reason": {"type": "string", "maxLength": 200}} if reason else {}
    return {
        "type": "object",
        "properties": {**first, **votes},
        "required": [*first, *dimensions],
        "additionalProperties": False,
    }
