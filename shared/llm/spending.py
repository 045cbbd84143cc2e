"""Makes one call within a budget: reserves its upper bound, calls the model, and settles what the call really cost."""

import dataclasses
from collections.abc import Callable

from shared.contracts.scores import Usage
from shared.llm.budget import BudgetTracker, Reservation, TokenPrices
from shared.llm.port import ChatModel, Completion, CompletionRequest, usage_of


@dataclasses.dataclass(frozen=True, slots=True)
class Payment:
    """Who pays from which budget, at which prices. `on_settled` receives the cost of every call, failed ones too."""

    budget: BudgetTracker
    payer: str
    prices: TokenPrices
    on_settled: Callable[[Usage], None]


async def complete_within_budget(
    model: ChatModel, request: CompletionRequest, upper: Usage, payment: Payment
) -> Completion:
    """Return the completion. Raises BudgetExhausted before a call that could exceed the budget."""
    upper = upper.model_copy(update={"money": payment.prices.money(upper)})
    reservation = Reservation(payment.budget, payment.payer, upper)
    reported = Usage()
    tracked = dataclasses.replace(request, on_send=reservation.on_send, on_lost_response=reservation.on_lost_response)
    try:
        completion = await model.complete(tracked)
        reported = usage_of(completion, upper)
        reported = reported.model_copy(update={"money": payment.prices.money(reported)})
    finally:
        payment.on_settled(reservation.settle(reported))
    return completion
