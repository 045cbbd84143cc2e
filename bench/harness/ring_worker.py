"""A judge worker without models: the real runtime, loop, bus and commit, with a constant-time score.

`bench/ring.py` runs it as a process. It has the settings of a service and must never be deployed.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from shared.config.settings import ServiceSettings
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.events import ScoresReady, SegmentReady
from shared.runtime.main import run_service
from shared.runtime.service import Service, ServicePorts
from shared.store import keys
from shared.store.create import create_or_read
from shared.store.port import Store

SLOTS = 64


async def build(settings: ServiceSettings, ports: ServicePorts) -> Service:
    """Like a real service: late imports, one consumer."""
    from dataclasses import replace

    from shared.bus.consumer import Consumer
    from shared.bus.topology import JUDGE_SEGMENTS

    async def judge(event: Envelope) -> Sequence[Envelope]:
        return [await _scored(ports.store, event)]

    return Service(consumers=[Consumer(replace(JUDGE_SEGMENTS, slots=SLOTS), judge)])


async def _scored(store: Store, event: Envelope) -> Envelope:
    """Commit a score object and announce it. An existing score is announced again."""
    from shared.contracts.scores import SegmentScores

    data = SegmentReady.model_validate(event.data.model_dump())
    key = keys.score(data.run, data.epoch, data.segment)
    scores = SegmentScores.model_validate(
        {**data.model_dump(include={"run", "epoch", "episode", "segment"}), "segment_key": data.key}
        | {"segment_digest": data.digest, "rubric": keys.RUBRIC, "status": "judged", "created": datetime.now(UTC)}
        | {"judges": [_judge(vote := int(data.digest[:8], 16) % 6)], "weights": {"progress": 1.0}}
        | {"weighted": vote / 5, "agreement": 1.0}
    )
    digest = (await create_or_read(store, key, scores.to_bytes())).digest
    fields = {"run": data.run, "epoch": data.epoch, "key": key, "digest": digest, "segment": data.segment}
    return wrap(ScoresReady.model_validate(fields | {"status": "judged"}), source="bench", fence=event.fence)


def _judge(vote: int) -> dict[str, object]:
    progress = {"votes": [vote] * 3, "value": vote / 5, "unanimous": True, "spread": 0}
    judge = {"judge": "bench", "route": "in-process", "model": "digest", "prompt": "0" * 64, "status": "judged"}
    return {**judge, "dimensions": {"progress": progress}}


if __name__ == "__main__":
    raise SystemExit(run_service("judge", ServiceSettings, build))
