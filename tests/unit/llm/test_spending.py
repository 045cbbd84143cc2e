"""What a call costs: what the server reports, or its upper bound where the answer is lost or says nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from shared.contracts.scores import Usage
from shared.llm.budget import Budget, BudgetExhausted, BudgetTracker, TokenPrices
from shared.llm.port import Choice, Completion, CompletionRequest, RouteUnavailable
from shared.llm.spending import Payment, complete_within_budget

REQUEST = CompletionRequest({"messages": []}, 1, 1, "demo")
UPPER = Usage(calls=1, prompt_tokens=1_000, output_tokens=200)
PRICES = TokenPrices(prompt=10, cached=1, output=20)
VOTE = Choice("a vote", "stop")
ANSWER = Completion((VOTE,), prompt_tokens=100, cached_tokens=40, output_tokens=10, seconds=2.0)


@dataclass
class Model:
    """A model that sends these requests in one call; a `lost` one has no answer, and an `unsent` one none got."""

    requests: Sequence[str] = ()
    answer: Completion | None = ANSWER
    sent: int = 0

    async def complete(self, request: CompletionRequest) -> Completion:
        for fate in (*self.requests, "answered"):
            request.on_send()
            self.sent += 1
            if fate == "lost":
                request.on_lost_response()
        if self.answer is None:
            raise RouteUnavailable("no answer")
        return self.answer

    def choices_per_request(self, wanted: int) -> int:
        return wanted

    call_limit_s = 60.0

    def seconds_since_response(self) -> float:
        return 0.0


@dataclass
class Purse:
    """A budget, and the costs that were reported."""

    limits: Budget = field(default_factory=Budget)
    costs: list[Usage] = field(default_factory=list)
    changes: int = 0

    def __post_init__(self) -> None:
        self.budget = BudgetTracker(self.limits, on_change=self._changed)

    def _changed(self) -> None:
        self.changes += 1

    async def pay(self, model: Model) -> Usage:
        """Make a call; return its cost."""
        await complete_within_budget(model, REQUEST, UPPER, Payment(self.budget, "state", PRICES, self.costs.append))
        return self.costs[-1]


async def test_a_call_costs_what_the_server_reports() -> None:
    purse = Purse()
    cost = await purse.pay(Model())
    assert (cost.calls, cost.prompt_tokens, cost.cached_tokens, cost.output_tokens) == (1, 100, 40, 10)
    assert cost.money == pytest.approx((60 * 10 + 40 * 1 + 10 * 20) / 1_000_000)
    assert (purse.budget.spent(), purse.budget.by_payer, purse.changes) == (cost, {"state": cost}, 1)


async def test_tokens_that_a_server_does_not_report_count_at_their_upper_bound() -> None:
    silent = Completion((VOTE,), prompt_tokens=None, cached_tokens=None, output_tokens=None, seconds=2.0)
    cost = await Purse().pay(Model(answer=silent))
    assert (cost.prompt_tokens, cost.output_tokens) == (1_000, 200)
    assert cost.money == pytest.approx((1_000 * 10 + 200 * 20) / 1_000_000)


async def test_more_cached_tokens_than_the_prompt_has_are_not_believed() -> None:
    boasting = Completion((VOTE,), prompt_tokens=100, cached_tokens=900, output_tokens=0, seconds=2.0)
    cost = await Purse().pay(Model(answer=boasting))
    assert cost.cached_tokens == 100
    assert cost.money == pytest.approx(100 / 1_000_000)
    assert PRICES.money(Usage(prompt_tokens=100, cached_tokens=900)) >= 0


async def test_a_failed_call_is_settled_and_frees_its_reservation() -> None:
    purse = Purse(Budget(calls=2, tokens=1_200))
    with pytest.raises(RouteUnavailable):
        await purse.pay(Model(answer=None))
    assert (purse.costs[-1].calls, purse.costs[-1].prompt_tokens) == (1, 0)
    await purse.pay(Model())
    with pytest.raises(BudgetExhausted, match="budget of 2 calls"):
        await purse.pay(Model())
    assert purse.budget.spent().calls == 2


async def test_a_repeated_request_needs_tokens_only_if_an_answer_was_lost() -> None:
    purse = Purse(Budget(tokens=1_200))
    assert (await purse.pay(Model(["unsent"]))).calls == 2
    purse = Purse(Budget(tokens=1_200))
    with pytest.raises(BudgetExhausted, match="budget of 1200 tokens"):
        await purse.pay(Model(["lost"]))
    assert (purse.costs[-1].calls, purse.costs[-1].prompt_tokens, purse.costs[-1].output_tokens) == (1, 1_000, 200)


async def test_each_lost_answer_counts_and_no_reservation_stays() -> None:
    purse = Purse(Budget(tokens=3 * 1_200 + 2 * 110))
    cost = await purse.pay(Model(["lost", "lost"]))
    assert (cost.calls, cost.prompt_tokens, cost.output_tokens) == (3, 2_100, 410)
    assert (await purse.pay(Model())).calls == 1, "only what the first call cost is gone"


async def test_a_call_that_could_exceed_the_money_is_not_sent() -> None:
    model, purse = Model(), Purse(Budget(money=0.0139))
    with pytest.raises(BudgetExhausted, match=r"budget of 0\.0139 money"):
        await purse.pay(model)
    assert (model.sent, purse.budget.exhausted, purse.costs) == (0, True, [])
