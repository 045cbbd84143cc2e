"""The cost of model calls and its hard limit: a call that could exceed the budget is not made.

A call is reserved at its upper bound before it is sent, and settled at the cost that the server reports. Only sent
requests count: a queued call costs nothing, a repeated one counts twice. A request whose response is lost counts at its
upper bound, because the server may have processed it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field

from shared.contracts.scores import Usage


class TokenPrices(BaseModel):
    """Money per million tokens, in a currency of your choice; 0 for a model on your own machines."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    prompt: float = Field(0.0, ge=0)
    cached: float = Field(0.0, ge=0)
    output: float = Field(0.0, ge=0)

    def money(self, usage: Usage) -> float:
        """Return the price of a usage. Cached tokens are part of the prompt tokens and have their own price."""
        fresh = max(0, usage.prompt_tokens - usage.cached_tokens)
        total = fresh * self.prompt + usage.cached_tokens * self.cached + usage.output_tokens * self.output
        return total / 1_000_000


class Budget(BaseModel):
    """Limits of one caller in one epoch of one run; None means unlimited."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    calls: int | None = Field(None, ge=0)
    tokens: int | None = Field(None, ge=0, description="prompt and output tokens together")
    money: float | None = Field(None, ge=0)

    def share(self, replicas: int) -> "Budget":
        """Return the share of one of `replicas` processes."""
        return Budget(
            calls=None if self.calls is None else self.calls // replicas,
            tokens=None if self.tokens is None else self.tokens // replicas,
            money=None if self.money is None else self.money / replicas,
        )


class BudgetExhausted(Exception):
    """The next call could exceed the budget. The message names the limit."""


@dataclass
class BudgetTracker:
    """Spending of one epoch: settled usage by payer (a judge, a planner's mode), and reservations of calls in flight.

    `on_change` is called after every settlement. `owner` names the budget in messages.
    """

    limits: Budget
    by_payer: dict[str, Usage] = field(default_factory=dict)
    on_change: Callable[[], None] = lambda: None
    owner: str = "judge"
    exhausted: bool = False
    _reserved: Usage = field(default_factory=Usage)

    def reserve(self, upper: Usage) -> None:
        """Reserve the upper bound of a call. Raises BudgetExhausted, and reserves nothing, if it does not fit."""
        after = add(self.spent(), add(self._reserved, upper))
        used = (after.calls, after.prompt_tokens + after.output_tokens, after.money)
        limits = (self.limits.calls, self.limits.tokens, self.limits.money)
        for name, amount, limit in zip(("calls", "tokens", "money"), used, limits, strict=True):
            if limit is not None and amount > limit * (1 + 1e-9):
                self.exhausted = True
                raise BudgetExhausted(f"the epoch's {self.owner} budget of {limit:g} {name} is used up")
        self._reserved = add(self._reserved, upper)

    def settle(self, payer: str, upper: Usage, actual: Usage) -> None:
        """Release the reservation `upper` and add the actual cost."""
        self._reserved = add(self._reserved, upper, sign=-1)
        self.by_payer[payer] = add(self.by_payer.get(payer, Usage()), actual)
        self.on_change()

    def spent(self) -> Usage:
        """Return the settled usage of all payers."""
        total = Usage()
        for usage in self.by_payer.values():
            total = add(total, usage)
        return total


class Reservation:
    """The reservation of one call: its tokens and one request. Each further request is reserved when it is sent."""

    def __init__(self, budget: BudgetTracker, payer: str, upper: Usage) -> None:
        """Reserve the call. Raises BudgetExhausted."""
        budget.reserve(upper)
        self._budget, self._payer, self._one, self._reserved = budget, payer, upper, upper
        self._sent, self._lost, self._unspent = 0, Usage(), True

    def on_send(self) -> None:
        """Count a request that is about to be sent. Raises BudgetExhausted."""
        if self._sent:
            again = Usage(calls=1) if self._unspent else self._one
            self._budget.reserve(again)
            self._reserved = add(self._reserved, again)
        self._sent, self._unspent = self._sent + 1, True

    def on_lost_response(self) -> None:
        """Count the last request at its upper bound: its response, and therefore its cost, is lost."""
        self._lost, self._unspent = add(self._lost, self._one), False

    def settle(self, reported: Usage) -> Usage:
        """Settle all sent requests: the reported cost plus that of lost responses. Returns the sum."""
        actual = add(self._lost, reported).model_copy(update={"calls": self._sent})
        self._budget.settle(self._payer, self._reserved, actual)
        return actual


def add(first: Usage, second: Usage, sign: int = 1) -> Usage:
    """Return the sum of two usages, or with sign -1 their difference, never below zero."""
    return Usage(
        calls=max(0, first.calls + sign * second.calls),
        prompt_tokens=max(0, first.prompt_tokens + sign * second.prompt_tokens),
        cached_tokens=max(0, first.cached_tokens + sign * second.cached_tokens),
        output_tokens=max(0, first.output_tokens + sign * second.output_tokens),
        seconds=max(0.0, first.seconds + sign * second.seconds),
        money=max(0.0, first.money + sign * second.money),
    )
