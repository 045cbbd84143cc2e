"""Metrics of the rules judge, including busy seconds over all slots, from which a benchmark computes utilisation."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest


class RulesServerMetrics:
    """Metrics in their own registry, so that several servers can run in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("rules_requests", "Requests received.", registry=self.registry)
        self.errors = Counter("rules_errors", "Requests answered with an error.", ["status"], registry=self.registry)
        self._choices = Counter("rules_choices", "Choices given.", ["model"], registry=self.registry)
        self._tokens = Counter("rules_tokens", "Tokens by kind.", ["model", "kind"], registry=self.registry)
        self._busy = Counter("rules_busy_seconds", "Busy seconds, summed over all slots.", registry=self.registry)
        self._serving = Gauge("rules_serving", "Requests being served.", registry=self.registry)
        self._most = Gauge(
            "rules_serving_most", "Highest number of requests served concurrently.", registry=self.registry
        )
        self.answered = 0
        self.waiting_now = 0
        self.serving_now = 0
        self.serving_most = 0

    @contextmanager
    def wait(self) -> Iterator[None]:
        """Count a queued request."""
        self.waiting_now += 1
        try:
            yield
        finally:
            self.waiting_now -= 1

    @contextmanager
    def serve(self) -> Iterator[None]:
        """Count a request that is being served."""
        self.serving_now += 1
        self.serving_most = max(self.serving_most, self.serving_now)
        self._serving.set(self.serving_now)
        self._most.set(self.serving_most)
        begun = time.monotonic()
        try:
            yield
        finally:
            self.serving_now -= 1
            self._serving.set(self.serving_now)
            self._busy.inc(time.monotonic() - begun)

    def count(self, model: str, prompt: int, cached: int, output: int, choices: int) -> None:
        """Count one answer."""
        self.answered += 1
        self._choices.labels(model).inc(choices)
        for kind, amount in (("prompt", prompt), ("cached", cached), ("output", output)):
            self._tokens.labels(model, kind).inc(amount)

    def text(self) -> str:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry).decode()
