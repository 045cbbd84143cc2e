"""Changes of what a judge reads that show how it reads: does it use the totals, and does it believe them?"""

import random
from dataclasses import replace
from typing import Final, Literal, get_args

from services.judge.domain.facts.summary import Facts

Variant = Literal["plain", "shuffled", "no-totals", "planted"]
VARIANTS: Final[tuple[Variant, ...]] = get_args(Variant)
MAX_PLANTED: Final = 6  # a planted total is at most this, or twice the true one


def varied(facts: Facts, variant: Variant, name: str) -> Facts:
    """Return the facts of the segment `name` in this variant. The timeline stays true in all of them.

    `shuffled` has the lines of TOTALS in another order, which should change nothing; `no-totals` has none; `planted`
    has wrong numbers, which only the timeline contradicts.
    """
    rng = random.Random(f"{variant} {name}")  # noqa: S311  # repeatable, not secret
    if variant == "no-totals":
        return replace(facts, totals={})
    if variant == "shuffled":
        lines = list(facts.totals.items())
        rng.shuffle(lines)
        return replace(facts, totals=dict(lines))
    if variant == "planted":
        return replace(facts, totals={name: _planted(name, value, rng) for name, value in facts.totals.items()})
    return facts


def _planted(name: str, value: int | None, rng: random.Random) -> int | None:
    if value is None or name == "steps":
        return value
    return rng.randint(0, max(MAX_PLANTED, 2 * value))
