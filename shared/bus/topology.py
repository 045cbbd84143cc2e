"""The bus topology as data: streams, consumers, and what each service may publish.

Provisioning makes the bus equal to this module, services only check it, and the server's permissions are derived from
it. A stream keeps an event only while a consumer needs it: the store is the truth, the bus is a doorbell.
"""

from dataclasses import dataclass
from typing import Final

from shared.bus.port import Subscription
from shared.bus.subjects import pattern
from shared.contracts.events import (
    EpochFinished,
    EventData,
    ExportRequested,
    RmReady,
    RmTrained,
    RunChanged,
    ScoresReady,
    SegmentExported,
    SegmentReady,
)

ACK_WAIT_S: Final = 30.0  # redelivery delay after a worker died; longer work signals progress every third of it
MAX_DELIVER: Final = 20  # the server stops delivering a message after this many; the loop dead-letters it before
DUPLICATE_WINDOW_S: Final = 600.0  # duplicates within it never reach a consumer; later ones find the commit object
MAX_ACK_PENDING: Final = 1_000  # unacknowledged events over all replicas of one consumer
DAY_S: Final = 86_400.0
MIB: Final = 1024 * 1024

DEAD_STREAM: Final = "ZELDA_DEAD"
DEAD_ROOT: Final = "zelda.dead"
ADVISORIES: Final = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.*.*"


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream of events. When it is full, publishing fails and is retried: no event is dropped silently."""

    name: str
    events: tuple[type[EventData], ...]
    max_bytes: int
    max_age_s: float = 7 * DAY_S

    @property
    def subjects(self) -> list[str]:
        """The subjects of its events, for all runs."""
        return [pattern(event) for event in self.events]


# Two streams: a flood of segments must not crowd out the few events that control runs.
SEGMENTS: Final = Stream(
    "ZELDA_SEGMENTS", (SegmentReady, ScoresReady, SegmentExported, ExportRequested), max_bytes=256 * MIB
)
RUNS: Final = Stream("ZELDA_RUNS", (EpochFinished, RmTrained, RmReady, RunChanged), max_bytes=64 * MIB)
STREAMS: Final = (SEGMENTS, RUNS)

# The judge itself ends a segment earlier, by the speed of its routes: a slow server takes minutes for a call.
JUDGE_SEGMENTS: Final = Subscription("judge-segments", (SegmentReady,), slots=8, timeout_s=3_600)
# Held until the epoch's scores are in, as the reward model's; only runs that learn from pairs take longer than a read.
JUDGE_EPOCHS: Final = Subscription("judge-epochs", (EpochFinished,), slots=8, timeout_s=DAY_S + 3_600)
# An export policy decides by the segment or by its scores; users request single segments.
EXPORTER_SEGMENTS: Final = Subscription(
    "exporter-segments", (SegmentReady, ScoresReady, ExportRequested), slots=1, timeout_s=300
)
REWARDMODEL_SCORES: Final = Subscription("rewardmodel-scores", (ScoresReady,), slots=32)
# Held until the epoch's scores are in, for which a run may allow a day; several slots keep runs independent.
REWARDMODEL_EPOCHS: Final = Subscription("rewardmodel-epochs", (EpochFinished,), slots=8, timeout_s=DAY_S + 3_600)
COORDINATOR_RUNS: Final = Subscription("coordinator-runs", (EpochFinished, RmTrained), slots=4)
TRAINER_RUNS: Final = Subscription("trainer-runs", (RmReady, RunChanged), slots=4)


@dataclass(frozen=True, slots=True)
class Role:
    """What one service does on the bus."""

    publishes: tuple[type[EventData], ...]
    subscriptions: tuple[Subscription, ...]
    handles_dead_letters: bool = False
    """Whether it reads and removes dead letters. It replays only the events that it may publish."""


ROLES: Final[dict[str, Role]] = {
    "trainer": Role((SegmentReady, EpochFinished), (TRAINER_RUNS,)),
    "judge": Role((ScoresReady,), (JUDGE_SEGMENTS, JUDGE_EPOCHS)),
    "rewardmodel": Role((RmTrained,), (REWARDMODEL_SCORES, REWARDMODEL_EPOCHS)),
    "exporter": Role((SegmentExported,), (EXPORTER_SEGMENTS,)),
    # The reconciler republishes events of commit objects without a successor. Scores and cards are polled in the store
    # and need no republishing.
    "coordinator": Role(
        (RmReady, RunChanged, SegmentReady, EpochFinished, ExportRequested),
        (COORDINATOR_RUNS,),
        handles_dead_letters=True,
    ),
}


def stream_of(subscription: Subscription) -> Stream:
    """The stream that holds all events of a subscription; ValueError if no single stream does."""
    for stream in STREAMS:
        if set(subscription.events) <= set(stream.events):
            return stream
    names = ", ".join(event.NAME for event in subscription.events)
    raise ValueError(f"subscription {subscription.name!r} takes {names}: no single stream holds them; split it")


def dead_subject(subscription: Subscription) -> str:
    """The subject of a consumer's dead letters."""
    return f"{DEAD_ROOT}.{subscription.name}"
