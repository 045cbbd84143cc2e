"""The judge that `--llm` sets up, against llama.cpp's server as the local system runs it, with a tiny random model."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cli.llm.local_judge import LocalModel
from cli.stack.layout import StackLayout
from cli.stack.process import StackError, SupervisedProcess
from cli.stack.user_settings import JUDGES_FILE
from services.judge.config import load_service_judges
from services.judge.runtime import JudgeRuntime
from services.judge.settings import JudgeGroup
from shared.contracts.ids import SegmentId
from shared.contracts.scores import DIMENSIONS, SegmentScores
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.integration.tiny_model import write_text_model
from tests.servers import free_ports
from tests.unit.judge.segment_factory import RUN, archive, recorded, walk

pytestmark = pytest.mark.llm


@pytest.fixture
async def llm(tmp_path: Path) -> AsyncIterator[tuple[StackLayout, SupervisedProcess]]:
    """The layout of a local system, and its running model server."""
    model, layout = tmp_path / "tiny.gguf", StackLayout(tmp_path)
    write_text_model(model)
    server = SupervisedProcess(LocalModel(model).server(layout, free_ports(1)[0]), layout.logs / "llm.log", print)
    await server.start()
    yield layout, server
    await server.stop()


async def test_one_request_brings_three_votes_on_all_dimensions(llm: tuple[StackLayout, SupervisedProcess]) -> None:
    layout, server = llm
    settings = LocalModel(layout.root / "tiny.gguf").judge_settings(layout, server.spec.ports[0], {})
    store = MemoryStore()
    file = load_service_judges(Path(settings[JUDGES_FILE]), "")
    runtime = JudgeRuntime(store, file, JudgeGroup(), monitoring=False)
    await runtime.probe_routes(retry=False)
    await runtime.handlers.segment_ready(await recorded(store, archive("s1", walk(3)), "s1"))
    scores = SegmentScores.from_bytes(await store.get(keys.score(RUN, 0, SegmentId("s1"))))
    await runtime.close()
    (result,) = scores.judges
    assert scores.status == "judged", result.reasons
    assert set(result.dimensions) == set(DIMENSIONS)
    assert all(len(score.votes) == 3 for score in result.dimensions.values())
    assert result.usage.calls == 1


async def test_a_damaged_model_is_reported_with_its_name(tmp_path: Path) -> None:
    model, layout = tmp_path / "damaged.gguf", StackLayout(tmp_path)
    model.write_bytes(b"GGUF\x03\x00\x00\x00" + os.urandom(1_000))
    server = SupervisedProcess(LocalModel(model).server(layout, free_ports(1)[0]), layout.logs / "llm.log", print)
    with pytest.raises(StackError, match=r"llm rejects its configuration: .*damaged\.gguf: llama\.cpp cannot load"):
        await server.start()
    await server.stop()
