"""A judge runtime with the rules judge behind a real HTTP client without a socket, for tests of the whole service."""

from collections.abc import Callable
from typing import Any

import httpx

from services.judge.config import load_judges
from services.judge.rules_server.app import RulesJudgeServer, create_app
from services.judge.rules_server.settings import Behaviour, RulesServerSettings
from services.judge.runtime import JudgeRuntime
from services.judge.settings import JudgeGroup
from shared.contracts.ids import SegmentId
from shared.contracts.scores import SegmentScores
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.unit.judge.segment_factory import RUN, walk

GOOD = {**walk(4), 150: {"treasures": ["sword"], "dialog": {"text": 1, "line": "TAKE THIS BLADE."}, "x": 40}}


class JudgeHarness:
    """A judge runtime whose routes all lead to one rules judge."""

    def __init__(self, behaviour: Behaviour, store: MemoryStore | None = None, **group: Any) -> None:
        app = create_app(RulesServerSettings(behaviour=behaviour))
        self.server: RulesJudgeServer = app.state.server
        self.store = MemoryStore() if store is None else store
        self.stopping = False
        file = load_judges(None, "http://rules.test/v1")
        settings = JudgeGroup(**{"audit_share": 0.0, "canary_segments": 0, **group})
        self.runtime = JudgeRuntime(self.store, file, settings, stopping=lambda: self.stopping)
        for route in self.runtime.routes.values():
            route.clients.transport = httpx.ASGITransport(app)

    @property
    def calls(self) -> int:
        return self.server.metrics.answered

    async def scores(self, segment: str = "s1", epoch: int = 0) -> SegmentScores:
        key = keys.score(RUN, epoch, SegmentId(segment))
        return SegmentScores.from_bytes(await self.store.get(key))


OpenHarness = Callable[..., JudgeHarness]


def refuse(request: httpx.Request) -> httpx.Response:
    """An unreachable server."""
    raise httpx.ConnectError("connection refused")
