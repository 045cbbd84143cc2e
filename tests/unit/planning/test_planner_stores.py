"""What a planning process keeps in the store, while the store answers and while it is away."""

import asyncio
import gzip
import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from structlog.testing import capture_logs

from services.trainer.planning import planner_spending
from services.trainer.planning.answer_archive import FLUSH_ANSWERS, MAX_UNSTORED, AnswerArchive
from services.trainer.planning.model_service import ModelService
from services.trainer.planning.planner_spending import EpochSpending, PlannerSpending
from services.trainer.planning.question import ModelAnswer, Question
from shared.contracts.ids import RunId
from shared.contracts.scores import Usage
from shared.errors import Transient
from shared.store.memory import MemoryStore
from tests.rules import RulesServer
from tests.unit.planning.threaded_models import planner_file

RUN: Final = RunId("play")
SPENDING: Final = "episodes/answers/play/epoch_0/spending.json"
TWO_CALLS: Final = {"guidance": {"calls": 2}}
ANSWER: Final = ModelAnswer("answered", "{}", seconds=0.5)


class UnsteadyStore(MemoryStore):
    """A store that a test takes away: its calls then wait, and fail once the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False
        self.fails = asyncio.Event()
        self.calls = 0

    async def get(self, key: str, digest: str | None = None) -> bytes:
        await self._reach()
        return await super().get(key, digest)

    async def put(self, key: str, data: bytes) -> str:
        await self._reach()
        return await super().put(key, data)

    async def _reach(self) -> None:
        self.calls += 1
        if self.away:
            await self.fails.wait()
            raise Transient("the store is away")


Ask = Callable[..., Question]


@pytest.fixture
def asked(facts: str) -> Ask:
    """A question with this seed."""

    def make(seed: int, epoch: int = 0) -> Question:
        return Question("text", facts, epoch, f"e/{seed}", seed)

    return make


def service(url: str, store: MemoryStore, budget: dict[str, Any] | None = None) -> ModelService:
    """A new planning process."""
    archive, spending = AnswerArchive(store, RUN, "p"), PlannerSpending(store, RUN)
    return ModelService(planner_file(url, budget), RUN, archive, spending)


async def kept(store: MemoryStore, epoch: int) -> list[dict[str, Any]]:
    """The kept answers of an epoch."""
    entries = await store.list(f"episodes/answers/play/epoch_{epoch}/")
    packs = [await store.get(entry.key) for entry in entries if entry.key.endswith(".jsonl.gz")]
    return [json.loads(line) for pack in packs for line in gzip.decompress(pack).splitlines()]


async def spent(store: MemoryStore) -> Usage:
    return EpochSpending.from_bytes(await store.get(SPENDING)).usage["text"]


async def test_questions_and_replies_are_kept_by_epoch(rules_server: RulesServer, asked: Ask) -> None:
    store = MemoryStore()
    models = service(rules_server.url, store)
    first = await models.answer(asked(7))
    for seed in range(FLUSH_ANSWERS):
        await models.answer(asked(seed, epoch=1))
    await models.close()
    (line,) = await kept(store, 0)
    assert (line["digest"], line["reply"], line["seed"]) == (asked(7).digest, first.text, 7)
    assert [line["seed"] for line in await kept(store, 1)] == list(range(FLUSH_ANSWERS))
    assert not await store.exists(SPENDING), "nothing limits the spending"


async def test_no_answer_waits_for_a_store_that_is_away(rules_server: RulesServer, asked: Ask) -> None:
    store = UnsteadyStore()
    store.away = True
    models = service(rules_server.url, store, {"guidance": {"calls": 1_000}})
    async with asyncio.timeout(20):
        for seed in range(FLUSH_ANSWERS + 1):
            assert (await models.answer(asked(seed))).status == "answered"
    assert store.calls == 2, "the spending is read and a pack is written, in the background"
    store.fails.set()
    await models.close()


async def test_packs_are_written_one_at_a_time_and_lose_nothing(asked: Ask) -> None:
    store = UnsteadyStore()
    store.away = True
    archive = AnswerArchive(store, RUN, "p")
    for seed in range(3 * FLUSH_ANSWERS):
        archive.keep(asked(seed), ANSWER)
        await asyncio.sleep(0)
    assert store.calls == 1
    store.fails.set()
    await asyncio.sleep(0.01)
    store.away = False
    await archive.close()
    assert [line["seed"] for line in await kept(store, 0)] == list(range(3 * FLUSH_ANSWERS))


async def test_dropped_answers_are_logged_once_for_a_write(asked: Ask) -> None:
    store = UnsteadyStore()
    store.away = True
    archive = AnswerArchive(store, RUN, "p")
    for seed in range(MAX_UNSTORED + 3):
        archive.keep(asked(seed), ANSWER)
    store.fails.set()
    with capture_logs() as lines:
        await asyncio.sleep(0.01)
    dropped = [line for line in lines if line["event"] == "answers dropped"]
    assert [(line["epoch"], line["answers"]) for line in dropped] == [(0, 3)]
    store.away = False
    await archive.close()
    assert [line["seed"] for line in await kept(store, 0)] == list(range(3, MAX_UNSTORED + 3)), "the newest are kept"


async def test_a_restarted_process_continues_the_epochs_budget(
    rules_server: RulesServer, asked: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner_spending, "WRITE_S", 0.02)
    store = MemoryStore()
    first = service(rules_server.url, store, TWO_CALLS)
    assert (await first.answer(asked(1))).status == "answered"
    await asyncio.sleep(0.2)  # then it is killed: nothing closes it
    second = service(rules_server.url, store, TWO_CALLS)
    assert second.figures(0)["text"].outcomes == {}
    await asyncio.sleep(0.01)
    assert [(await second.answer(asked(seed))).status for seed in (2, 3)] == ["answered", "exhausted"]
    assert (await second.answer(asked(4, epoch=1))).status == "answered", "each epoch has its own budget"
    await first.close()
    await second.close()


async def test_spending_survives_a_store_that_is_away(
    rules_server: RulesServer, asked: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner_spending, "WRITE_S", 0.02)
    store = UnsteadyStore()
    await store.put(SPENDING, EpochSpending(usage={"text": Usage(calls=5)}).to_bytes())
    store.away = True
    store.fails.set()
    models = service(rules_server.url, store, {"guidance": {"calls": 9}})
    assert (await models.answer(asked(1))).status == "answered"
    store.away = False
    await asyncio.sleep(0.2)
    assert (await spent(store)).calls == 6
    assert (await models.answer(asked(2))).status == "answered"
    await models.close()
    assert (await spent(store)).calls == 7


async def test_damaged_spending_begins_an_empty_budget(rules_server: RulesServer, asked: Ask) -> None:
    store = MemoryStore()
    await store.put(SPENDING, b"{")
    models = service(rules_server.url, store, TWO_CALLS)
    assert (await models.answer(asked(1))).status == "answered"
    await models.close()
    assert (await spent(store)).calls == 1
