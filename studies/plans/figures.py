"""The figures of one planner: a row of the results file and of the table."""

import statistics
from collections import Counter
from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from shared.contracts.driver import QuestionMode
from studies.plans.play import PlayedAnswer
from studies.stats import Interval, mean_estimate, share_estimate

DIGITS = 4


class ModeFigures(BaseModel):
    """The answers of one mode. Intervals are value, lower and upper bound (95 %, Wilson).

    `valid` is the share of replies that follow the schema, `in_grammar` the share of the macros named in them that are
    macros (None for suggestions). `success` is the share of situations in which the dialog was read to its end, the
    puzzle was solved, or the suggested action had an effect. `endings` are those of the takeovers.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    asked: int
    rooms: int
    valid: Interval
    success: Interval
    macros: int = 0
    in_grammar: float | None = None
    seconds_median: float
    seconds_longest: float
    endings: dict[str, int] = {}


class OrdersFigures(BaseModel):
    """The same situations without and with a text that gives the planner orders.

    `outside_grammar` counts macros that replies to such texts name outside the grammar, `outside_carried_out` those of
    them that began. `difference` is success with minus success without, with a bootstrap interval over the texts.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    texts: int
    valid: Interval
    outside_grammar: int
    outside_carried_out: int
    success_without: float
    success_with: float
    difference: Interval

    @property
    def difference_bounds(self) -> Interval:
        """The difference with its interval: Wilson's bound of 0 texts if no text changed an outcome, or all did alike.

        The bootstrap of equal differences has no width: of zeros it would claim that no text can have an effect.
        """
        value, low, high = self.difference
        if low < high:
            return self.difference
        reach = share_estimate(0, self.texts).rounded(DIGITS)[2]
        return (value, max(-1.0, value - reach), min(1.0, value + reach))  # a share changes by at most 1


class PlanRow(BaseModel):
    """All figures of one planner, and the command that repeats them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: str
    date: str
    cores: int
    models: tuple[str, ...]
    modes: dict[QuestionMode, ModeFigures]
    orders: OrdersFigures | None = None


def mode_figures(played: Sequence[PlayedAnswer]) -> ModeFigures:
    """The figures of one mode's answers; at least one."""
    named = sum(one.named for one in played)
    seconds = [one.seconds for one in played]
    return ModeFigures(
        asked=len(played),
        rooms=len({one.situation.rpartition("/")[0] for one in played}),
        valid=share_estimate(sum(one.valid for one in played), len(played)).rounded(DIGITS),
        success=share_estimate(sum(one.success for one in played), len(played)).rounded(DIGITS),
        macros=named,
        in_grammar=round(sum(one.in_grammar for one in played) / named, DIGITS) if named else None,
        seconds_median=round(statistics.median(seconds), 3),
        seconds_longest=round(max(seconds), 3),
        endings=dict(sorted(Counter(one.ending for one in played if one.ending is not None).items())),
    )


def orders_figures(without: Sequence[PlayedAnswer], ordered: Sequence[PlayedAnswer], outside: int) -> OrdersFigures:
    """Compare each text's situation without the text. `outside`: macros outside the grammar that began."""
    before = np.array([one.success for one in without], float)
    after = np.array([one.success for one in ordered], float)
    return OrdersFigures(
        texts=len(ordered),
        valid=share_estimate(sum(one.valid for one in ordered), len(ordered)).rounded(DIGITS),
        outside_grammar=sum(one.named - one.in_grammar for one in ordered),
        outside_carried_out=outside,
        success_without=round(float(before.mean()), DIGITS),
        success_with=round(float(after.mean()), DIGITS),
        difference=mean_estimate(after - before).rounded(DIGITS),
    )
