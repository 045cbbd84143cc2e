"""A stub service that answers every segment with a score. The service life cycle tests run it as a process."""

import asyncio
from collections.abc import Sequence

from pydantic import Field
from starlette.responses import PlainTextResponse

from shared.config.settings import ServiceSettings, SettingsGroup
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.events import ScoresReady, SegmentReady
from shared.runtime.main import run_service
from shared.runtime.service import Service, ServicePorts
from shared.store import keys
from shared.store.create import create_or_read


class StubGroup(SettingsGroup):
    """The stub's own settings."""

    work_s: float = Field(0.0, ge=0, le=600)


class StubSettings(ServiceSettings):
    """The common settings and the stub's own."""

    stub: StubGroup = Field(default_factory=StubGroup)


async def build(settings: StubSettings, ports: ServicePorts) -> Service:
    """Import the bus late, as the real services do."""
    from shared.bus.consumer import Consumer
    from shared.bus.topology import JUDGE_SEGMENTS

    async def handler(event: Envelope) -> Sequence[Envelope]:
        assert isinstance(event.data, SegmentReady)
        key = keys.score(event.runid, event.epoch, event.data.segment)
        await asyncio.sleep(settings.stub.work_s)
        digest = (await create_or_read(ports.store, key, b"scored")).digest
        data = ScoresReady.model_validate({**event.data.model_dump(), "key": key, "digest": digest, "status": "judged"})
        return [wrap(data, source="stub")]

    return Service(consumers=[Consumer(JUDGE_SEGMENTS, handler)], app=PlainTextResponse("the service's own page"))


if __name__ == "__main__":
    raise SystemExit(run_service("judge", StubSettings, build))
