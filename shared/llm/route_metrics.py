"""The metrics of one caller's routes, such as `zelda_judge_calls_total`. Labels are routes, which are few."""

from shared.telemetry import metrics


class RouteMetrics:
    """Counts the calls of all routes of one caller. The caller creates it once per process."""

    def __init__(self, caller: str) -> None:
        self.calls = metrics.counter(f"{caller}_calls_total", "Calls of a route by outcome.", ["route", "outcome"])
        self.call_seconds = metrics.seconds(f"{caller}_call_seconds", "Duration of a call, all attempts.", ["route"])
        self.wait_seconds = metrics.seconds(
            f"{caller}_wait_seconds", "Time that a call waited for a free slot.", ["route"]
        )
        self.limit = metrics.gauge(f"{caller}_concurrency_limit_calls", "Current limit of calls in flight.", ["route"])
        self.in_flight = metrics.gauge(f"{caller}_in_flight_calls", "Calls in flight.", ["route"])
        self.breaker = metrics.gauge(f"{caller}_breaker_state", "0 closed, 1 half-open, 2 open.", ["route"])
