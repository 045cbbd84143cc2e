"""Small valid events: each test names only the fields it is about."""

from shared.contracts.base import sha256
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.events import EpochFinished, RmReady, ScoresReady, SegmentReady
from shared.contracts.ids import Digest, EpisodeId, RunId, SegmentId
from shared.store import keys

RUN = RunId("demo")


def segment_ready(number: int = 0, run: RunId = RUN, epoch: int = 0) -> Envelope:
    """The trainer recorded segment `number`."""
    episode, segment = EpisodeId(f"e{epoch:04d}"), SegmentId(f"e{epoch:04d}-s{number:05d}")
    key = keys.segment(run, epoch, episode, segment)
    data = SegmentReady(run=run, epoch=epoch, key=key, digest=_digest(key), episode=episode, segment=segment)
    return wrap(data, source="trainer")


def scores_ready(number: int = 0, run: RunId = RUN, epoch: int = 0) -> Envelope:
    """The judges are done with segment `number`."""
    segment = SegmentId(f"e{epoch:04d}-s{number:05d}")
    key = keys.score(run, epoch, segment)
    data = ScoresReady(run=run, epoch=epoch, key=key, digest=_digest(key), segment=segment, status="judged")
    return wrap(data, source="judge")


def epoch_finished(epoch: int = 0, run: RunId = RUN, segments: int = 1) -> Envelope:
    """The trainer finished an epoch."""
    key = keys.epoch_finished(run, epoch)
    return wrap(EpochFinished(run=run, epoch=epoch, key=key, digest=_digest(key), segments=segments), source="trainer")


def rm_ready(epoch: int = 0, run: RunId = RUN, fence: int = 1) -> Envelope:
    """The coordinator orders an epoch."""
    key = keys.epoch_start(run, epoch)
    return wrap(RmReady(run=run, epoch=epoch, key=key, digest=_digest(key)), source="coordinator", fence=fence)


def _digest(key: str) -> Digest:
    return Digest(sha256(key.encode()))
