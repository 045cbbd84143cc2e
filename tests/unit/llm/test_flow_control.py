"""The pure state machines behind a route: breaker, adaptive concurrency, retries, and budget."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from shared.contracts.scores import Usage
from shared.llm.budget import Budget, BudgetExhausted, BudgetTracker, TokenPrices
from shared.llm.call_outcome import (
    MAX_RETRY_AFTER_S,
    CallOutcome,
    classify_response,
    pause_before_retry,
    retry_after,
)
from shared.llm.limits.breaker import Breaker
from shared.llm.limits.concurrency import ConcurrencyController

NOW = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)


class BreakerMachine(RuleBasedStateMachine):
    """Any history of calls: the breaker never lets two probes through, and always opens and closes again."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker = Breaker(threshold=3, open_s=10)
        self.now = 0.0
        self.in_row = 0
        self.probing: float | None = None

    @rule(seconds=st.integers(0, 60).map(lambda quarters: quarters / 4))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def a_call_starts(self) -> None:
        before = self.breaker.state(self.now)
        admitted = self.breaker.admit(self.now)
        if before == "open":
            assert not admitted
        if before == "closed":
            assert admitted
        if before == "half-open" and admitted:
            assert self.probing is None or self.now - self.probing >= 10
            self.probing = self.now

    @rule()
    def a_call_fails(self) -> None:
        was_probe = self.breaker.state(self.now) == "half-open" and self.probing is not None
        self.breaker.record_failure(self.now)
        self.in_row += 1
        self.probing = None
        if was_probe or self.in_row == 3:
            assert self.breaker.state(self.now) == "open"

    @rule()
    def a_call_succeeds(self) -> None:
        self.breaker.record_success()
        self.in_row, self.probing = 0, None
        assert self.breaker.state(self.now) == "closed"

    @precondition(lambda self: self.probing is not None)
    @rule()
    def the_probe_is_given_up(self) -> None:
        self.breaker.release_probe()
        self.probing = None

    @invariant()
    def it_is_closed_before_the_threshold(self) -> None:
        if self.in_row < 3:
            assert self.breaker.state(self.now) == "closed"

    @invariant()
    def it_never_stays_open_for_longer_than_its_time(self) -> None:
        assert self.breaker.seconds_until_probe(self.now) <= 10


TestBreaker = BreakerMachine.TestCase


def test_breaker_opens_after_ten_failures_and_probes_after_30_seconds() -> None:
    breaker = Breaker()
    for _ in range(10):
        assert breaker.admit(0.0)
        breaker.record_failure(0.0)
    assert not breaker.admit(29.9)
    assert breaker.admit(30.0)
    assert not breaker.admit(30.1), "one probe at a time"
    breaker.record_failure(31.0)
    assert not breaker.admit(60.9)
    assert breaker.admit(61.0)
    breaker.record_success()
    assert breaker.state(61.0) == "closed"


def test_probe_without_outcome_blocks_the_route_for_one_more_period() -> None:
    breaker = Breaker(threshold=1)
    breaker.record_failure(0.0)
    assert breaker.admit(30.0)
    assert not breaker.admit(59.9)
    assert breaker.admit(60.0)


@given(st.lists(st.tuples(st.sampled_from(["success", "overload"]), st.integers(0, 64), st.floats(0, 3)), max_size=200))
def test_limit_stays_within_its_bounds(history: list[tuple[str, int, float]]) -> None:
    machine, now = ConcurrencyController(maximum=32, minimum=1), 0.0
    for kind, in_flight, pause in history:
        now += pause
        before = machine.limit
        if kind == "success":
            machine.record_success(in_flight)
            assert before <= machine.limit <= before + 1
        else:
            machine.record_overload(now)
            assert machine.limit <= before
        assert 1 <= machine.limit <= 32


def test_limit_finds_the_capacity_of_a_server_and_stays_near_it() -> None:
    machine, now, seen = ConcurrencyController(maximum=200, initial=8), 0.0, []
    capacity = 40
    for _ in range(300):  # rounds of one second in which every place is used once
        now += 1.0
        calls = machine.limit
        for place in range(calls):
            machine.record_success(calls) if place < capacity else machine.record_overload(now)
        seen.append(machine.limit)
    steady = seen[50:]
    assert capacity * 0.6 <= min(steady)
    assert max(steady) <= capacity + 8
    assert sum(steady) / len(steady) > capacity * 0.8


def test_overload_reported_by_many_calls_reduces_the_limit_once() -> None:
    machine = ConcurrencyController(maximum=32, initial=32)
    for call in range(30):
        machine.record_overload(10.0 + call * 0.01)
    assert machine.limit == 22


def test_limit_of_an_idle_route_does_not_grow() -> None:
    machine = ConcurrencyController(maximum=32, initial=8)
    for _ in range(100):
        machine.record_success(1)
    assert machine.limit == 8
    machine.record_success(4)
    assert machine.limit == 9, "half of it is in use"


@pytest.mark.parametrize(("least", "most"), [(0, 8), (9, 8)])
def test_inconsistent_limits_are_refused(least: int, most: int) -> None:
    with pytest.raises(ValueError, match="need 1 <= minimum <= maximum"):
        ConcurrencyController(minimum=least, maximum=most)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("3", 3.0),
        (" 7 ", 7.0),
        ("0", 0.0),
        ("999999999999", MAX_RETRY_AFTER_S),
        (format_datetime(NOW + timedelta(seconds=20), usegmt=True), 20.0),
        (format_datetime(NOW - timedelta(seconds=20), usegmt=True), 0.0),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("٣", None),
        ("", None),
        ("Mon, 99999999999999999999 Jan 2026 00:00:00 GMT", None),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        ("Mon, 04 May 2026 12:00:20 -0000", 20.0),
        ("Fri, 31 Dec 9999 23:59:59 -2359", MAX_RETRY_AFTER_S),
        ("Mon, 01 Jan 0001 00:00:00 +2359", 0.0),
    ],
)
def test_retry_after_is_a_number_a_date_or_none(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, NOW) == seconds


@pytest.mark.parametrize(
    ("status", "kind"),
    [(200, "answer"), (429, "overload"), (503, "overload"), (408, "outage"), (500, "outage"), (502, "outage")]
    + [(status, "outage") for status in (501, 504, 505, 507, 508, 520, 521, 522, 523, 524, 529, 599)]
    + [(status, "refused") for status in (301, 302, 400, 401, 403, 404, 413, 422)],
)
def test_status_has_one_classification(status: int, kind: str) -> None:
    assert classify_response(status, {}, NOW).kind == kind


def test_drop_reason_of_llm_d_is_reported() -> None:
    outcome = classify_response(429, {"x-llm-d-request-dropped-reason": "rejected-saturated"}, NOW)
    assert outcome.detail == "HTTP 429 (rejected-saturated)"


@pytest.mark.parametrize(("reason", "detail"), [("\x1b[31mred", "HTTP 429"), ("x" * 500, f"HTTP 429 ({'x' * 60})")])
def test_unprintable_or_long_drop_reason_is_omitted_or_cut(reason: str, detail: str) -> None:
    assert classify_response(429, {"x-llm-d-request-dropped-reason": reason}, NOW).detail == detail


@given(st.floats(0, 100), st.floats(0, 1, exclude_max=True), st.none() | st.floats(0, 300))
def test_second_attempt_respects_retry_after_and_the_time_left(left: float, draw: float, asked: float | None) -> None:
    pause = pause_before_retry(CallOutcome("overload", "x", asked), left, draw)
    if pause is not None:
        assert pause >= (asked or 0)
        assert pause + 1 <= left
    assert pause_before_retry(CallOutcome("refused", "x"), left, draw) is None


def test_callers_that_failed_together_retry_apart() -> None:
    for asked in (None, 20.0):
        outcome = CallOutcome("overload", "x", asked)
        first, last = (pause_before_retry(outcome, 60, draw) for draw in (0.0, 0.99))
        assert first is not None
        assert last is not None
        assert last - first > 0.2


CALL = st.tuples(st.integers(0, 5_000), st.integers(0, 900), st.floats(0, 1))


@given(st.lists(CALL, max_size=60), st.integers(0, 40), st.integers(0, 60_000), st.floats(0, 0.1))
def test_spending_never_exceeds_any_limit_of_the_budget(
    calls: list[tuple[int, int, float]], most_calls: int, most_tokens: int, most_money: float
) -> None:
    budget = BudgetTracker(Budget(calls=most_calls, tokens=most_tokens, money=most_money))
    prices = TokenPrices(prompt=2.0, output=6.0)
    for prompt, output, used in calls:
        most = Usage(calls=1, prompt_tokens=prompt, output_tokens=output)
        most = most.model_copy(update={"money": prices.money(most)})
        try:
            budget.reserve(most)
        except BudgetExhausted:
            assert budget.exhausted
            continue
        real = Usage(calls=1, prompt_tokens=int(prompt * used), output_tokens=int(output * used))
        budget.settle("state", most, real.model_copy(update={"money": prices.money(real)}))
    spent = budget.spent()
    assert spent.calls <= most_calls
    assert spent.prompt_tokens + spent.output_tokens <= most_tokens
    assert spent.money <= most_money * (1 + 1e-6)


def test_calls_in_flight_count_against_the_budget() -> None:
    budget = BudgetTracker(Budget(calls=2))
    budget.reserve(Usage(calls=1))
    budget.reserve(Usage(calls=1))
    with pytest.raises(BudgetExhausted, match="budget of 2 calls"):
        budget.reserve(Usage(calls=1))


def test_cached_tokens_have_their_own_price() -> None:
    prices = TokenPrices(prompt=10, cached=1, output=20)
    usage = Usage(prompt_tokens=1_000_000, cached_tokens=400_000, output_tokens=100_000)
    assert prices.money(usage) == pytest.approx(6 + 0.4 + 2)


def test_replicas_share_a_budget() -> None:
    assert Budget(calls=100, tokens=10, money=3.0).share(3) == Budget(calls=33, tokens=3, money=1.0)
