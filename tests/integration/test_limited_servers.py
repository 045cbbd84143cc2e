"""Judges on a real llama.cpp server that refuses n, is slow, drips its answers, or applies no schema.

Each segment is judged, or abstained with its reason, after a bounded number of requests.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
import yaml

from services.judge.config import load_judges
from services.judge.runtime import JudgeRuntime
from services.judge.settings import JudgeGroup
from shared.contracts.ids import SegmentId
from shared.contracts.scores import SegmentScores
from shared.errors import Transient
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.integration.tiny_server import KEY, serving_tiny_model
from tests.unit.judge.segment_factory import RUN, archive, recorded, walk

pytestmark = pytest.mark.llm


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Base address of a server with one slot: it refuses more than one choice."""
    with serving_tiny_model(tmp_path_factory.mktemp("tiny"), slots=1) as address:
        yield address


class Judging:
    """One judge with one route to the server, and what it did."""

    def __init__(self, server: str, folder: Path, **route: Any) -> None:
        (folder / "key").write_text(KEY)
        fields = {"url": server, "token_file": str(folder / "key"), "attempts": 1, "max_concurrent": 1, **route}
        judge = {"name": "one", "route": "tiny", "model": "tiny", "dimensions": ["progress", "dialog"], "votes": [3]}
        (folder / "judges.yaml").write_text(yaml.safe_dump({"routes": {"tiny": fields}, "judges": [judge]}))
        self.store = MemoryStore()
        self.runtime = JudgeRuntime(
            self.store, load_judges(folder / "judges.yaml", ""), JudgeGroup(cache_size=0), monitoring=False
        )
        self.route = self.runtime.routes["tiny"]

    async def judge(self, name: str, deliveries: int = 1) -> SegmentScores:
        """Deliver the segment until it has a score, at most so many times."""
        event = await recorded(self.store, archive(name, walk(3)), name)
        for attempt in range(deliveries):
            try:
                await self.runtime.handlers.segment_ready(event)
                break
            except Transient:
                if attempt == deliveries - 1:
                    raise
        return SegmentScores.from_bytes(await self.store.get(keys.score(RUN, 0, SegmentId(name))))


async def test_votes_are_split_when_the_server_refuses_n(server: str, tmp_path: Path) -> None:
    one = Judging(server, tmp_path, total_timeout_s=60)
    with structlog.testing.capture_logs() as logs:
        first, second = await one.judge("s1"), await one.judge("s2")
    assert [scores.status for scores in (first, second)] == ["judged", "judged"], first.judges[0].reasons
    assert len(first.judges[0].dimensions["progress"].votes) == 3
    assert [scores.judges[0].usage.calls for scores in (first, second)] == [4, 3], "one refusal for all segments"
    assert [log["choices_per_request"] for log in logs if log["event"] == "choices limited"] == [1]
    await one.runtime.close()


async def test_later_votes_find_the_prompt_in_the_servers_cache(server: str, tmp_path: Path) -> None:
    one = Judging(server, tmp_path, total_timeout_s=60)
    usage = (await one.judge("s1")).judges[0].usage
    assert usage.cached_tokens > 0.6 * usage.prompt_tokens, "the second and the third call read nothing again"
    await one.runtime.close()


async def test_a_server_slower_than_the_limit_is_measured_and_judges(server: str, tmp_path: Path) -> None:
    one = Judging(server, tmp_path, total_timeout_s=0.05, longest_timeout_s=60, breaker_failures=100)
    scores = await one.judge("s1", deliveries=12)
    assert scores.status == "judged"
    assert one.route.call_limit_s > 0.05
    await one.runtime.close()


async def test_a_server_beyond_the_longest_limit_is_given_up(server: str, tmp_path: Path) -> None:
    one = Judging(server, tmp_path, total_timeout_s=0.02, longest_timeout_s=0.05, breaker_failures=100)
    one.runtime.handlers._patience_s = 0.2
    scores = await one.judge("s1", deliveries=50)
    assert scores.status == "abstained"
    assert "no answer within" in scores.judges[0].reasons[0]
    await one.runtime.close()


class Dripping(httpx.AsyncByteStream):
    """Passes a body on byte by byte."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for byte in self.body:
            await asyncio.sleep(0.0005)
            yield bytes([byte])


class Between(httpx.AsyncBaseTransport):
    """A gateway before the server: it drips answers, or drops the schema of requests."""

    def __init__(self, *, drips: bool = False, schema: bool = True) -> None:
        self.drips, self.schema, self.requests = drips, schema, 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        body = await request.aread()
        if not self.schema and body:
            body = json.dumps({**json.loads(body), "response_format": {"type": "text"}}).encode()
        headers = {name: value for name, value in request.headers.items() if name != "content-length"}
        passed = httpx.Request(request.method, request.url, headers=headers, content=body)
        async with httpx.AsyncHTTPTransport() as server:
            answer = await server.handle_async_request(passed)
            raw = await answer.aread()
        if self.drips:
            return httpx.Response(answer.status_code, headers=answer.headers, stream=Dripping(raw))
        return httpx.Response(answer.status_code, headers=answer.headers, content=raw)


async def test_a_dripping_answer_counts_when_it_is_complete(server: str, tmp_path: Path) -> None:
    one = Judging(server, tmp_path, total_timeout_s=0.3, longest_timeout_s=60, breaker_failures=100)
    one.route.clients.transport = Between(drips=True)
    scores = await one.judge("s1", deliveries=12)
    assert scores.status == "judged"
    await one.runtime.close()


async def test_a_server_without_schemas_makes_the_judge_abstain(server: str, tmp_path: Path) -> None:
    one = Judging(server, tmp_path, total_timeout_s=60)
    gateway = one.route.clients.transport = Between(schema=False)
    scores = await one.judge("s1")
    assert scores.status == "abstained"
    assert any("cut off" in reason or "JSON" in reason for reason in scores.judges[0].reasons)
    assert gateway.requests == 4, "one refusal of n, and one request per vote"
    await one.runtime.close()
