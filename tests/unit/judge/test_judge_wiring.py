"""At startup the judge service probes each route for its models and their context length."""

import asyncio

import pytest

from services.judge.config import load_judges
from services.judge.runtime import JudgeRuntime
from services.judge.settings import JudgeGroup, JudgeSettings
from services.judge.wiring import wire
from shared.bus.memory import MemoryBus
from shared.llm.port import RouteUnavailable
from shared.llm.route import RouteClient
from shared.runtime.service import ServicePorts
from shared.store.memory import MemoryStore


async def test_service_probes_each_route_before_it_judges(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    async def models(self: RouteClient) -> dict[str, int | None]:
        asked.append(self.name)
        raise RouteUnavailable("not yet")

    monkeypatch.setattr(RouteClient, "list_models", models)
    settings = JudgeSettings.model_validate({"store": {"url": "memory://"}})
    await wire(settings, ServicePorts(MemoryBus(), MemoryStore(), asyncio.Event()))
    assert sorted(asked) == ["rules-puzzle", "rules-state", "rules-vision"]


async def test_only_an_unreachable_route_is_probed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, away = list[str](), {"rules-puzzle"}

    async def models(self: RouteClient) -> dict[str, int | None]:
        asked.append(self.name)
        if self.name in away:
            raise RouteUnavailable(f"route {self.name}: away")
        return {"rules": 4_096}

    monkeypatch.setattr(RouteClient, "list_models", models)
    runtime = JudgeRuntime(MemoryStore(), load_judges(None, "http://rules.test/v1"), JudgeGroup())
    with pytest.raises(RouteUnavailable, match="rules-puzzle: away"):
        await runtime.probe_routes(retry=False)
    assert [judge.context for judge in runtime.pool.judges] == [4_096, None, 4_096]
    away.clear()
    await runtime.probe_routes()
    assert [judge.context for judge in runtime.pool.judges] == [4_096] * 3
    assert sorted(asked) == ["rules-puzzle", "rules-puzzle", "rules-state", "rules-vision"]
