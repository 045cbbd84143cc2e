"""Who says and who hears what on the bus, as data: streams, consumers, and what each service may publish.

Provisioning makes the bus equal to this page, services only check it, and the server's permissions are derived from it.
Streams keep an event only as long as a consumer still needs it: the store is the truth, the bus a doorbell.
"""

from dataclasses import dataclass
from typing import Final

from shared.bus.port import Subscription
from shared.contracts.events import (
    EpochFinished,
    EventData,
    RmReady,
    RmTrained,
    RunChanged,
    ScoresReady,
    SegmentExported,
    SegmentReady,
)
from shared.contracts.subjects import pattern

ACK_WAIT_S: Final = 30.0  # a dead worker's message waits this long; longer work is kept alive every third of it
MAX_DELIVER: Final = 20  # the server goes silent on a message after this many; the loop dead-letters it before
DUPLICATE_WINDOW_S: Final = 600.0  # repeats inside it never reach a consumer; later ones meet the commit object
MAX_ACK_PENDING: Final = 1_000  # events in work over all replicas of one consumer
DAY_S: Final = 86_400.0
MIB: Final = 1024 * 1024

DEAD_STREAM: Final = "ZELDA_DEAD"
DEAD_ROOT: Final = "zelda.dead"
ADVISORIES: Final = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.*.*"


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream of events. When it is full, publishing fails (and is retried): nothing is dropped silently."""

    name: str
    events: tuple[type[EventData], ...]
    max_bytes: int
    max_age_s: float = 7 * DAY_S

    @property
    def subjects(self) -> list[str]:
        """The subjects of its events, of every run."""
        return [pattern(event) for event in self.events]


# Two streams, so that a flood of segments cannot crowd out the few events that steer runs.
SEGMENTS: Final = Stream("ZELDA_SEGMENTS", (SegmentReady, ScoresReady, SegmentExported), max_bytes=256 * MIB)
RUNS: Final = Stream("ZELDA_RUNS", (EpochFinished, RmTrained, RmReady, RunChanged), max_bytes=64 * MIB)
STREAMS: Final = (SEGMENTS, RUNS)

JUDGE_SEGMENTS: Final = Subscription("judge-segments", (SegmentReady,), slots=8, timeout_s=300)
# Both: a policy decides by the segment itself or by what the judges said of it.
EXPORTER_SEGMENTS: Final = Subscription("exporter-segments", (SegmentReady, ScoresReady), slots=1, timeout_s=300)
REWARDMODEL_SCORES: Final = Subscription("rewardmodel-scores", (ScoresReady,), slots=32)
# Held until the epoch's scores are in, which a run may allow a day for; several, so that runs do not wait for another.
REWARDMODEL_EPOCHS: Final = Subscription("rewardmodel-epochs", (EpochFinished,), slots=8, timeout_s=DAY_S + 3_600)
COORDINATOR_RUNS: Final = Subscription("coordinator-runs", (EpochFinished, RmTrained), slots=4)
TRAINER_RUNS: Final = Subscription("trainer-runs", (RmReady, RunChanged), slots=4)


@dataclass(frozen=True, slots=True)
class Role:
    """What one service does on the bus."""

    publishes: tuple[type[EventData], ...]
    subscriptions: tuple[Subscription, ...]


ROLES: Final[dict[str, Role]] = {
    "trainer": Role((SegmentReady, EpochFinished), (TRAINER_RUNS,)),
    "judge": Role((ScoresReady,), (JUDGE_SEGMENTS,)),
    "rewardmodel": Role((RmTrained,), (REWARDMODEL_SCORES, REWARDMODEL_EPOCHS)),
    "exporter": Role((SegmentExported,), (EXPORTER_SEGMENTS,)),
    # The reconciler rings again for commit objects without a successor, whoever wrote them. Scores and cards need no
    # ring: who waits for them looks into the store.
    "coordinator": Role((RmReady, RunChanged, SegmentReady, EpochFinished), (COORDINATOR_RUNS,)),
}


def stream_of(subscription: Subscription) -> Stream:
    """The stream that holds all events of a subscription, or ValueError: one consumer reads one stream."""
    for stream in STREAMS:
        if set(subscription.events) <= set(stream.events):
            return stream
    names = ", ".join(event.NAME for event in subscription.events)
    raise ValueError(f"subscription {subscription.name!r} takes {names}: no single stream holds them; split it")


def dead_subject(subscription: Subscription) -> str:
    """Where a consumer's dead letters go."""
    return f"{DEAD_ROOT}.{subscription.name}"
