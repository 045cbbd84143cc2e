"""What judging costs, and a hard limit: a call that could exceed the budget is not made.

Pure: a call is reserved at its upper bound before it is sent, and settled with what the server reports. A call is a
request that was sent: an ask that stays in line costs nothing, one that is sent twice counts twice. One that brings no
answer may have cost all the same, so that it counts at its bound, too.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field

from shared.contracts.scores import Usage


class TokenPrices(BaseModel):
    """Money per million tokens, in a currency of your choice; 0 when the model runs on your own machines."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    prompt: float = Field(0.0, ge=0)
    cached: float = Field(0.0, ge=0)
    output: float = Field(0.0, ge=0)

    def money(self, usage: Usage) -> float:
        """Price of a usage. Cached prompt tokens are part of the prompt tokens and have their own price."""
        fresh = max(0, usage.prompt_tokens - usage.cached_tokens)
        total = fresh * self.prompt + usage.cached_tokens * self.cached + usage.output_tokens * self.output
        return total / 1_000_000


class Budget(BaseModel):
    """Most that one epoch of one run may cost in all; None means no limit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    calls: int | None = Field(None, ge=0)
    tokens: int | None = Field(None, ge=0, description="prompt and output tokens together")
    money: float | None = Field(None, ge=0)

    def share(self, replicas: int) -> "Budget":
        """What one of `replicas` judge processes may spend."""
        return Budget(
            calls=None if self.calls is None else self.calls // replicas,
            tokens=None if self.tokens is None else self.tokens // replicas,
            money=None if self.money is None else self.money / replicas,
        )


class BudgetExhausted(Exception):
    """The next call could exceed the budget. The message names the limit."""


@dataclass
class BudgetTracker:
    """Spending of one epoch: settled by judge, and reserved by calls in flight. `settled` hears of every booking."""

    limits: Budget
    by_judge: dict[str, Usage] = field(default_factory=dict)
    on_change: Callable[[], None] = lambda: None
    exhausted: bool = False
    _reserved: Usage = field(default_factory=Usage)

    def reserve(self, most: Usage) -> None:
        """Set aside the most that a call can cost, or raise BudgetExhausted and set nothing aside."""
        after = add(self.spent(), add(self._reserved, most))
        used = (after.calls, after.prompt_tokens + after.output_tokens, after.money)
        limits = (self.limits.calls, self.limits.tokens, self.limits.money)
        for name, amount, limit in zip(("calls", "tokens", "money"), used, limits, strict=True):
            if limit is not None and amount > limit * (1 + 1e-9):
                self.exhausted = True
                raise BudgetExhausted(f"the epoch's judge budget of {limit:g} {name} is used up")
        self._reserved = add(self._reserved, most)

    def settle(self, judge: str, most: Usage, real: Usage) -> None:
        """Give back the reservation `most` and book what the call really cost."""
        self._reserved = add(self._reserved, most, sign=-1)
        self.by_judge[judge] = add(self.by_judge.get(judge, Usage()), real)
        self.on_change()

    def spent(self) -> Usage:
        """Everything settled so far."""
        total = Usage()
        for usage in self.by_judge.values():
            total = add(total, usage)
        return total


class Reservation:
    """What is set aside for one ask: its tokens and one request; room for a further one is sought when it is sent."""

    def __init__(self, budget: BudgetTracker, judge: str, most: Usage) -> None:
        """Reserve the ask, or raise BudgetExhausted."""
        budget.reserve(most)
        self._budget, self._judge, self._one, self._held = budget, judge, most, most
        self._sent, self._lost, self._unspent = 0, Usage(), True

    def on_send(self) -> None:
        """A request is sent now, or BudgetExhausted is raised."""
        if self._sent:
            again = Usage(calls=1) if self._unspent else self._one
            self._budget.reserve(again)
            self._held = add(self._held, again)
        self._sent, self._unspent = self._sent + 1, True

    def on_lost_response(self) -> None:
        """Nobody says what the request that was sent last cost: it counts at its upper bound."""
        self._lost, self._unspent = add(self._lost, self._one), False

    def settle(self, answer: Usage) -> Usage:
        """Book the requests that were sent and what they cost, the answer's and the lost ones'; returns the sum."""
        real = add(self._lost, answer).model_copy(update={"calls": self._sent})
        self._budget.settle(self._judge, self._held, real)
        return real


def add(first: Usage, second: Usage, sign: int = 1) -> Usage:
    """Sum of two usages, or with sign -1 their difference, never below zero."""
    return Usage(
        calls=max(0, first.calls + sign * second.calls),
        prompt_tokens=max(0, first.prompt_tokens + sign * second.prompt_tokens),
        cached_tokens=max(0, first.cached_tokens + sign * second.cached_tokens),
        output_tokens=max(0, first.output_tokens + sign * second.output_tokens),
        seconds=max(0.0, first.seconds + sign * second.seconds),
        money=max(0.0, first.money + sign * second.money),
    )
