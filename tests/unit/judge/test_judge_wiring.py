"""At startup the judge service probes each route; a file with few dimensions judges every segment."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.judge.config import JudgesFile, load_judges
from services.judge.runtime import JudgeRuntime
from services.judge.settings import JudgeGroup, JudgeSettings
from services.judge.wiring import wire
from shared.bus.memory import MemoryBus
from shared.contracts.ids import SegmentId
from shared.contracts.scores import SegmentScores
from shared.llm.port import RouteUnavailable
from shared.llm.route import RouteClient
from shared.runtime.service import ServicePorts
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.unit.judge.harness import GOOD
from tests.unit.judge.segment_factory import RUN, archive, recorded

ONLY_PROGRESS = {"progress": 1, "dialog": 0, "puzzle": 0, "novelty": 0, "efficiency": 0}
IN_DUNGEON = {step: {**values, "in_dungeon": True, "dungeon": 0} for step, values in GOOD.items()}


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


async def judged(changes: dict[int, dict[str, Any]], file: dict[str, Any], **group: Any) -> SegmentScores:
    """The score of one segment by the rules judge in this process."""
    judge = {"name": "rules", "kind": "rules", "dimensions": ["progress"], "votes": [1]}
    store, judges = MemoryStore(), JudgesFile.model_validate({"judges": [judge], **file})
    runtime = JudgeRuntime(store, judges, JudgeGroup(**group), monitoring=False)
    await runtime.handlers.segment_ready(await recorded(store, archive("s1", changes)))
    await runtime.close()
    return SegmentScores.from_bytes(await store.get(keys.score(RUN, 0, SegmentId("s1"))))


@pytest.mark.parametrize("changes", [GOOD, IN_DUNGEON], ids=["outdoors", "dungeon"])
@pytest.mark.parametrize("file", [{}, {"weights": ONLY_PROGRESS}], ids=["default", "own"])
async def test_a_judge_of_one_dimension_gives_scores_in_every_phase(
    changes: dict[int, dict[str, Any]], file: dict[str, Any]
) -> None:
    scores = await judged(changes, file, min_weight=1.0)
    assert scores.phase == ("dungeon" if changes is IN_DUNGEON else "overworld-travel")
    assert (scores.status, scores.weights) == ("judged", ONLY_PROGRESS)
    assert scores.weighted == scores.judges[0].dimensions["progress"].value


async def test_a_phase_without_weight_for_the_rated_keeps_the_files(tmp_path: Path) -> None:
    path = tmp_path / "phases.yaml"
    puzzles = {**ONLY_PROGRESS, "progress": 0, "puzzle": 1}
    path.write_text(yaml.safe_dump({"phases": [{"name": "riddles", "weights": puzzles}]}))
    scores = await judged(GOOD, {}, phases_file=path)
    assert (scores.phase, scores.status, scores.weights) == ("riddles", "judged", ONLY_PROGRESS)


async def test_a_dimension_of_weight_0_counts_in_no_phase() -> None:
    judge = {"name": "rules", "kind": "rules", "dimensions": ["progress", "puzzle"], "votes": [1]}
    scores = await judged(IN_DUNGEON, {"judges": [judge], "weights": ONLY_PROGRESS})
    assert scores.weights == ONLY_PROGRESS
