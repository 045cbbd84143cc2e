"""Replies of models: valid votes, and a corpus of over 300 invalid ones."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.judge.config import JudgeSpec
from services.judge.domain.replies import PairReply, Vote, parse_pair, parse_vote
from services.judge.service.judge import Judge
from shared.contracts.ids import JudgeName
from shared.llm.budget import Budget, BudgetTracker
from shared.llm.completions import parse_model_list
from shared.llm.json_reply import InvalidReply
from shared.llm.port import Choice
from tests.unit.judge.garbage import NAMES, TEXT, VALID, corpus
from tests.unit.judge.scripted_model import ScriptedModel
from tests.unit.judge.segment_factory import judge_input, walk

SPEC = JudgeSpec(name=JudgeName("state"), route="any", model="any", dimensions=NAMES)


def budget() -> BudgetTracker:
    return BudgetTracker(Budget())


def test_corpus_is_large() -> None:
    assert len(corpus()) >= 300


def test_valid_reply_is_a_vote() -> None:
    vote = parse_vote(TEXT, "stop", NAMES)
    assert vote == Vote("three rooms", {"progress": 3, "dialog": 1, "efficiency": 4})


def test_no_reply_of_the_corpus_is_a_vote() -> None:
    begun = time.monotonic()
    for why, content, finish in corpus():
        with pytest.raises(InvalidReply):
            pytest.fail(f"{why}: {parse_vote(content, finish, NAMES)}")
    assert time.monotonic() - begun < 10


async def test_judge_with_only_garbage_replies_abstains_with_reasons() -> None:
    for why, content, finish in corpus():
        result = await Judge(SPEC, ScriptedModel(*[Choice(content, finish)] * 3)).evaluate(judge_input(), budget())
        assert (result.status, result.dimensions) == ("abstained", {}), why
        assert len(result.reasons) == 3, why
        result.to_bytes()


async def test_one_valid_vote_of_three_is_not_enough_and_two_are() -> None:
    good, bad = Choice(TEXT, "stop"), Choice("no idea", "stop")
    one = await Judge(SPEC, ScriptedModel(good, bad, bad)).evaluate(judge_input(), budget())
    two = await Judge(SPEC, ScriptedModel(good, bad, good)).evaluate(judge_input(), budget())
    assert (one.status, two.status) == ("abstained", "judged")
    assert two.dimensions["progress"].votes == [3, 3]
    assert any("not one JSON object" in reason for reason in two.reasons)


async def test_reasons_are_kept_without_control_characters() -> None:
    reply = json.dumps({**VALID, "reason": "line one\nline two\x1b[31m" + "x" * 600})
    result = await Judge(SPEC, ScriptedModel(*[Choice(reply, "stop")] * 3)).evaluate(judge_input(), budget())
    assert result.reasons[0].startswith("line one line two [31mx")
    assert all(len(reason) <= 500 and reason.isprintable() for reason in result.reasons)


async def test_budget_settles_the_reported_cost() -> None:
    model, ledger = ScriptedModel(*[Choice(TEXT, "stop")] * 3), budget()
    result = await Judge(SPEC, model).evaluate(judge_input("s7", walk(3)), ledger)
    assert (result.usage.prompt_tokens, result.usage.cached_tokens, result.usage.output_tokens) == (900, 400, 60)
    assert ledger.spent() == result.usage


@pytest.mark.parametrize(
    ("raw", "models"),
    [
        (b'{"data": [{"id": "a", "max_model_len": 4096}, {"id": "b"}]}', {"a": 4096, "b": None}),
        (b'{"data": [{"id": "a", "max_model_len": "long"}]}', {"a": None}),
        (b'{"data": [{"name": "a"}]}', {}),
        (b'{"data": 3}', {}),
        (b'{"models": []}', {}),
        (b"<html>", {}),
    ],
)
def test_model_list_is_parsed_or_empty(raw: bytes, models: dict[str, int | None]) -> None:
    assert parse_model_list(raw) == models


def test_comparison_reply_must_be_one_of_three_answers() -> None:
    assert parse_pair('{"reason": "more rooms", "better": "B"}', "stop") == PairReply("more rooms", "B")
    for better in ('"C"', '"a"', "1", "null", '["A"]', '"A or B"'):
        with pytest.raises(InvalidReply):
            parse_pair(f'{{"reason": "x", "better": {better}}}', "stop")
    assert len(parse_pair(json.dumps({"reason": "x" * 900, "better": "A"}), "stop").reason) == 500, "a record's limit"
    with pytest.raises(InvalidReply, match="the reason is not a text"):
        parse_pair('{"reason": 3, "better": "A"}', "stop")


@given(st.text(max_size=200) | st.recursive(st.none() | st.booleans() | st.floats() | st.integers(), st.lists))
def test_any_content_is_a_vote_or_an_invalid_reply(content: object) -> None:
    for reply in (content, json.dumps(content) if not isinstance(content, str) else content):
        try:
            assert set(parse_vote(reply, "stop", NAMES).values) == set(NAMES)
        except InvalidReply as error:
            assert str(error)  # noqa: PT017  # both outcomes are right; a crash is not


@given(st.fixed_dictionaries({"reason": st.text(), **{name: st.integers(-2, 8) for name in NAMES}}))
def test_vote_is_valid_exactly_when_all_numbers_are_in_range(reply: dict[str, int]) -> None:
    numbers = {name: reply[name] for name in NAMES}
    try:
        assert parse_vote(json.dumps(reply), "stop", NAMES).values == numbers
        assert all(0 <= value <= 5 for value in numbers.values())
    except InvalidReply:
        assert any(not 0 <= value <= 5 for value in numbers.values())
