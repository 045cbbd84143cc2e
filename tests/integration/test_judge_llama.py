"""The judges against a real inference server: llama.cpp with a tiny random model.

Random votes are no judgement, but everything else is real: prompts, pictures, schema, seeds, choices, usage, errors.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import yaml

from services.judge.config import JudgesFile, load_judges
from services.judge.runtime import JudgeRuntime
from services.judge.service.prompt_builder import build_prompt
from services.judge.settings import JudgeGroup
from services.judge.telemetry import ROUTES
from shared.contracts.ids import SegmentId
from shared.contracts.scores import SegmentScores
from shared.llm.port import CompletionRequest, RequestRefused, RouteUnavailable
from shared.llm.route import RouteClient
from shared.llm.route_spec import RouteSpec
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.integration.tiny_server import KEY, serving_tiny_model
from tests.unit.judge.segment_factory import RUN, archive, judge_input, recorded, walk

pytestmark = pytest.mark.llm


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Base address of the running server."""
    with serving_tiny_model(tmp_path_factory.mktemp("tiny"), pictures=True) as address:
        yield address


@pytest.fixture
def judges(server: str, tmp_path: Path) -> JudgesFile:
    (tmp_path / "key").write_text(KEY)
    route = {"url": server, "token_file": str(tmp_path / "key"), "total_timeout_s": 60, "max_concurrent": 4}
    file = {
        "routes": {"tiny": route},
        "judges": [
            {"name": "state", "route": "tiny", "model": "tiny", "dimensions": ["progress", "dialog", "efficiency"]},
            {"name": "puzzle", "route": "tiny", "model": "tiny", "dimensions": ["puzzle"], "votes": [3]},
            {"name": "vision", "route": "tiny", "model": "tiny", "dimensions": ["novelty"], "frames": 8, "votes": [3]},
        ],
    }
    (tmp_path / "judges.yaml").write_text(yaml.safe_dump(file))
    return load_judges(tmp_path / "judges.yaml", "")


@pytest.fixture
async def route(server: str, tmp_path: Path) -> AsyncIterator[RouteClient]:
    (tmp_path / "key").write_text(KEY)
    spec = RouteSpec.model_validate({"url": server, "token_file": str(tmp_path / "key"), "total_timeout_s": 60})
    opened = RouteClient("tiny", spec, ROUTES)
    yield opened
    await opened.close()


async def test_three_judges_with_pictures_score_segments_end_to_end(judges: JudgesFile) -> None:
    store = MemoryStore()
    runtime = JudgeRuntime(store, judges, JudgeGroup(cache_size=0), monitoring=False)
    await runtime.probe_routes()
    for number in range(2):
        name = f"s{number}"
        await runtime.handlers.segment_ready(await recorded(store, archive(name, walk(2 + number)), name))
        scores = SegmentScores.from_bytes(await store.get(keys.score(RUN, 0, SegmentId(name))))
        assert scores.status == "judged", [result.reasons for result in scores.judges]
        assert {name for result in scores.judges for name in result.dimensions} == set(scores.weights)
        for result in scores.judges:
            assert all(len(score.votes) in (3, 7, 11) for score in result.dimensions.values())
            assert result.usage.prompt_tokens > 1_000
    await runtime.close()


async def test_votes_of_one_request_differ_and_the_seed_repeats_them(judges: JudgesFile, route: RouteClient) -> None:
    prompt = await build_prompt(judges.judges[0], judge_input("s1", walk(3)), None)
    first, again, other = [await route.complete(CompletionRequest(prompt.body, 3, seed, RUN)) for seed in (7, 7, 8)]
    texts = [str(choice.content) for choice in first.choices]
    assert len(set(texts)) == 3
    assert [str(choice.content) for choice in again.choices] == texts
    assert [str(choice.content) for choice in other.choices] != texts


async def test_prompt_counts_once_for_three_votes_and_stays_below_its_bound(
    judges: JudgesFile, route: RouteClient
) -> None:
    for spec in judges.judges:
        prompt = await build_prompt(spec, judge_input("s1", walk(3), frames=8), None)
        answer = await route.complete(CompletionRequest(prompt.body, 3, 1, RUN))
        assert answer.prompt_tokens is not None
        assert answer.prompt_tokens <= prompt.tokens
        if not spec.frames:
            assert answer.prompt_tokens > 0.9 * prompt.tokens, "bytes are tokens here: the bound is almost reached"


async def test_judge_abstains_when_the_server_refuses_a_long_prompt(judges: JudgesFile, route: RouteClient) -> None:
    body = (await build_prompt(judges.judges[0], judge_input("s1"), None)).body
    long = {**body, "messages": [*body["messages"], {"role": "user", "content": "x " * 20_000}]}
    with pytest.raises(RequestRefused, match="context"):
        await route.complete(CompletionRequest(long, 3, 1, RUN))


async def test_wrong_token_differs_from_an_outage(server: str, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text("sk-wrong")
    spec = RouteSpec.model_validate({"url": server, "token_file": str(tmp_path / "wrong")})
    wrong = RouteClient("tiny", spec, ROUTES)
    with pytest.raises(RouteUnavailable, match=r"HTTP 401.*check model name, token"):
        await wrong.complete(
            CompletionRequest({"model": "tiny", "messages": [{"role": "user", "content": "x"}]}, 1, 1, RUN)
        )
    await wrong.close()
