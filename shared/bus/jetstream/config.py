"""The topology as JetStream configurations, and how declared and actual ones are compared."""

from typing import Any, Final

from nats.js import api

from shared.bus.port import Subscription
from shared.bus.topology import (
    ACK_WAIT_S,
    ADVISORIES,
    DAY_S,
    DEAD_ROOT,
    DEAD_STREAM,
    DUPLICATE_WINDOW_S,
    MAX_ACK_PENDING,
    MAX_DELIVER,
    MIB,
    Stream,
)
from shared.contracts.envelope import MAX_EVENT_BYTES

HEADER_BYTES: Final = 1024  # room for headers beside the largest event
OWNER: Final = {"owner": "zelda-rlaif"}  # metadata of our consumers: only those may be removed as left over
REASON, CONSUMER, SUBJECT, ATTEMPT = "Zelda-Reason", "Zelda-Consumer", "Zelda-Subject", "Zelda-Attempt"
# Fields that must agree between declared and actual; the others are the server's defaults.
STREAM_FIELDS: Final = ("subjects", "retention", "discard", "max_bytes", "max_age", "max_msg_size", "duplicate_window")
CONSUMER_FIELDS: Final = ("ack_policy", "ack_wait", "max_deliver", "max_ack_pending", "filter_subjects")


def stream_config(stream: Stream, replicas: int = 1) -> api.StreamConfig:
    """An event stream: kept until every consumer has acknowledged, refusing (not dropping) when full."""
    return api.StreamConfig(
        name=stream.name,
        subjects=stream.subjects,
        retention=api.RetentionPolicy.INTEREST,
        discard=api.DiscardPolicy.NEW,
        storage=api.StorageType.FILE,
        max_bytes=stream.max_bytes,
        max_age=stream.max_age_s,
        max_msg_size=MAX_EVENT_BYTES + HEADER_BYTES,
        duplicate_window=DUPLICATE_WINDOW_S,
        num_replicas=replicas,
    )


def dead_stream_config(replicas: int = 1) -> api.StreamConfig:
    """The dead-letter stream: a month's, the oldest dropped when full. It also stores the server's advisories."""
    return api.StreamConfig(
        name=DEAD_STREAM,
        subjects=[f"{DEAD_ROOT}.*", ADVISORIES],
        retention=api.RetentionPolicy.LIMITS,
        discard=api.DiscardPolicy.OLD,
        storage=api.StorageType.FILE,
        max_bytes=64 * MIB,
        max_age=30 * DAY_S,
        max_msg_size=2 * (MAX_EVENT_BYTES + HEADER_BYTES),
        duplicate_window=DUPLICATE_WINDOW_S,
        num_replicas=replicas,
    )


def consumer_config(subscription: Subscription, subjects: list[str]) -> api.ConsumerConfig:
    """A durable pull consumer with explicit acknowledgement."""
    return api.ConsumerConfig(
        name=subscription.name,
        durable_name=subscription.name,
        ack_policy=api.AckPolicy.EXPLICIT,
        deliver_policy=api.DeliverPolicy.ALL,
        ack_wait=ACK_WAIT_S,
        max_deliver=MAX_DELIVER,
        max_ack_pending=MAX_ACK_PENDING,
        filter_subjects=subjects,
        metadata=dict(OWNER),
    )


def differences(declared: Any, actual: Any, fields: tuple[str, ...]) -> str:
    """The fields in which two configurations differ, as `field: declared X, found Y`; empty when they agree."""
    found = []
    for field in fields:
        want, have = _plain(getattr(declared, field)), _plain(getattr(actual, field))
        if want != have:
            found.append(f"{field}: declared {want}, found {have}")
    return "; ".join(found)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return sorted(value)
    return getattr(value, "value", value)
