"""Prompts and raw replies are kept word for word, without pictures, one object per prompt."""

import asyncio
import gzip
import json
from dataclasses import replace

import pytest

from services.judge.config import JudgeSpec
from services.judge.service.judge import Judge
from services.judge.service.reply_archive import ReplyArchive
from shared.contracts.ids import JudgeName, RunId
from shared.contracts.scores import MAX_REPLIES_BYTES, MAX_REPLY, JudgeReplies
from shared.errors import ContractError, Transient
from shared.llm.budget import Budget, BudgetTracker
from shared.llm.port import Choice
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.unit.judge.scripted_model import ScriptedModel
from tests.unit.judge.segment_factory import judge_input

SPEC = JudgeSpec(name=JudgeName("one"), route="r", model="m", dimensions=("progress",), frames=2, votes=(3,))
GOOD, BAD = json.dumps({"reason": "a key", "progress": 4}), "I would say four."


async def asked(store: MemoryStore, bad: str = BAD) -> JudgeReplies:
    model = ScriptedModel(Choice(GOOD, "stop"), Choice(bad, "stop"), Choice(GOOD, "stop"))
    clip = judge_input(frames=1)
    result = await Judge(SPEC, model, archive=ReplyArchive(store)).evaluate(clip, BudgetTracker(Budget()))
    return JudgeReplies.unpack(await store.get(keys.replies(clip.run, result.prompt)))


async def test_valid_and_invalid_replies_are_kept() -> None:
    kept = await asked(MemoryStore())
    assert kept.replies == [GOOD, BAD, GOOD]
    assert kept.judge == "one"
    assert kept.question.startswith("FACTS")


async def test_pictures_are_replaced_by_their_digests() -> None:
    text = json.dumps((await asked(MemoryStore())).prompt)
    assert "data:image" not in text
    assert "sha256:" in text


async def test_an_equal_prompt_replaces_its_object() -> None:
    store = MemoryStore()
    await asked(store)
    await asked(store)
    assert len(await store.list("episodes/replies/")) == 1


async def test_an_answer_from_the_cache_is_kept_for_its_own_run() -> None:
    store = MemoryStore()
    judge = Judge(SPEC, ScriptedModel(*[Choice(GOOD, "stop")] * 3), cache_size=4, archive=ReplyArchive(store))
    clip = judge_input(frames=1)
    for run in (RunId("first"), RunId("second")):
        result = await judge.evaluate(replace(clip, run=run), BudgetTracker(Budget()))
        assert result.kept
        kept = JudgeReplies.unpack(await store.get(keys.replies(run, result.prompt)))
        assert kept.replies == [GOOD] * 3


class ForgetfulStore(MemoryStore):
    """A store that cannot be written to while it is `away`."""

    away = True

    async def put(self, key: str, data: bytes) -> str:
        if self.away:
            raise Transient("the store is away")
        return await super().put(key, data)


async def test_a_store_that_is_away_costs_the_replies_and_no_votes() -> None:
    store, model = ForgetfulStore(), ScriptedModel(*[Choice(GOOD, "stop")] * 3)
    judge, clip = Judge(SPEC, model, cache_size=4, archive=ReplyArchive(store)), judge_input(frames=1)
    result = await judge.evaluate(clip, BudgetTracker(Budget()))
    assert (result.status, result.kept) == ("judged", False)
    store.away = False
    again = await judge.evaluate(clip, BudgetTracker(Budget()))
    assert model.asked == [3], "a redelivered segment finds the answer in the cache"
    assert (again.dimensions, again.kept) == (result.dimensions, True)
    assert JudgeReplies.unpack(await store.get(keys.replies(clip.run, again.prompt))).replies == [GOOD] * 3


async def test_an_evaluation_cancelled_at_the_archive_is_not_paid_again() -> None:
    class SlowStore(MemoryStore):
        async def put(self, key: str, data: bytes) -> str:
            await asyncio.sleep(60)
            return await super().put(key, data)

    model, clip = ScriptedModel(*[Choice(GOOD, "stop")] * 3), judge_input(frames=1)
    judge = Judge(SPEC, model, cache_size=4, archive=ReplyArchive(SlowStore()))
    for _ in range(2):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(judge.evaluate(clip, BudgetTracker(Budget())), 1.0)
    assert model.asked == [3]


async def test_a_comparison_counts_though_its_reply_is_not_stored() -> None:
    model = ScriptedModel(Choice(json.dumps({"reason": "a key", "better": "A"}), "stop"))
    judge = Judge(SPEC, model, archive=ReplyArchive(ForgetfulStore()))
    found = await judge.weigh(judge_input("s1"), judge_input("s2"), BudgetTracker(Budget()))
    assert found.vote is not None
    assert (found.vote.choice, found.kept) == ("A", False)


@pytest.mark.parametrize("bad", ["endless " * 100_000, "half a character: \ud83d"])
async def test_a_reply_that_no_document_can_hold_is_kept_in_part(bad: str) -> None:
    kept = await asked(MemoryStore(), bad)
    assert kept.replies[0::2] == [GOOD, GOOD]
    assert kept.replies[1][:16] == bad[:16]
    assert len(kept.replies[1]) == min(len(bad), MAX_REPLY)


@pytest.mark.parametrize("data", [b"", b"no gzip", b"\x1f\x8b\x08\x00broken"])
def test_damaged_replies_are_refused(data: bytes) -> None:
    with pytest.raises(ContractError):
        JudgeReplies.unpack(data)


def test_a_bomb_is_not_unpacked() -> None:
    with pytest.raises(ContractError, match="unpack to more than"):
        JudgeReplies.unpack(gzip.compress(b"0" * (MAX_REPLIES_BYTES + 1)))
