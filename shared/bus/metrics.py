"""Metrics of consuming and publishing. Labels: the consumer's name and a small fixed set of outcomes."""

from typing import Final

from shared.telemetry import metrics

OUTCOMES: Final = ("done", "retried", "dead", "given_back", "unconfirmed", "in_work")
CAUSES: Final = ("contract", "permanent", "exhausted", "crashing")

IN_FLIGHT: Final = metrics.gauge("bus_events_in_flight", "events being handled", ["consumer"])
PENDING: Final = metrics.gauge("bus_events_pending", "events not yet acknowledged, all replicas", ["consumer"])
LAST_FETCH: Final = metrics.gauge(
    "bus_last_fetch_timestamp_seconds",
    "time of the last answered fetch, or of the last check while all slots are busy",
    ["consumer"],
)
DELIVERIES: Final = metrics.counter(
    "bus_deliveries_total", f"deliveries by outcome: {', '.join(OUTCOMES)}", ["consumer", "outcome"]
)
REDELIVERIES: Final = metrics.counter("bus_redeliveries_total", "deliveries beyond the first", ["consumer"])
DEAD: Final = metrics.counter(
    "bus_dead_letters_total", f"dead letters by cause: {', '.join(CAUSES)}", ["consumer", "cause"]
)
RESTORED: Final = metrics.counter("bus_consumers_restored_total", "deleted consumers that were recreated", ["consumer"])
HANDLE: Final = metrics.seconds("bus_handle_seconds", "time to handle an event, publishing included", ["consumer"])
ACK: Final = metrics.seconds("bus_ack_seconds", "time until an acknowledgement is confirmed", ["consumer"])
AGE: Final = metrics.seconds("bus_event_age_seconds", "age of an event when its handling begins", ["consumer"])
PUBLISHES: Final = ("stored", "repeated", "failed")
PUBLISHED: Final = metrics.counter("bus_published_total", f"publishes by outcome: {', '.join(PUBLISHES)}", ["outcome"])
for _outcome in PUBLISHES:  # exported as 0, as in `initialise`: the first refused event must raise the alert
    PUBLISHED.labels(_outcome)
RECONNECTS: Final = metrics.counter("bus_reconnects_total", "reconnections")
DENIED: Final = metrics.counter("bus_denied_total", "operations that the bus's permissions refused")


def initialise(consumer: str) -> None:
    """Export the consumer's counters as 0: a Prometheus series that begins at 1 shows no increase, so an alert would
    miss the first dead letter."""
    for outcome in OUTCOMES:
        DELIVERIES.labels(consumer, outcome)
    for cause in CAUSES:
        DEAD.labels(consumer, cause)
    REDELIVERIES.labels(consumer)
