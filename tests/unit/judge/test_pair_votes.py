"""Which of two clips is better: read from probabilities, and a tie where the order decides."""

import json
import math

import pytest

from services.judge.config import JudgeSpec
from services.judge.domain.facts.timeline import PromptTooLong
from services.judge.domain.pair_votes import PairVote, chosen, read_pair_vote, soft_label
from services.judge.service.judge import Judge
from services.judge.service.prompt_builder import build_pair_prompt
from shared.contracts.ids import JudgeName
from shared.llm.budget import Budget, BudgetTracker
from shared.llm.json_reply import InvalidReply
from shared.llm.port import Choice, TokenOptions
from tests.unit.judge.scripted_model import ScriptedModel
from tests.unit.judge.segment_factory import judge_input, walk

SPEC = JudgeSpec(name=JudgeName("one"), route="r", model="m", dimensions=("progress",), asking="probabilities")


def reply(answer: str, **shares: float) -> list[TokenOptions]:
    """The tokens of `{"better": "A"}`, with probabilities at the answer."""
    place = TokenOptions(answer, tuple((name, math.log(share)) for name, share in shares.items()))
    return [TokenOptions('{"better": "', ()), place, TokenOptions('"}', ())]


def test_the_shares_of_the_answers_are_normalised() -> None:
    vote = read_pair_vote(reply("A", A=0.5, B=0.2, equal=0.1, eq=0.1, Apple=0.1))
    assert vote.first == pytest.approx(0.5 / 0.9)
    assert vote.equal == pytest.approx(0.2 / 0.9)
    assert vote.preference == pytest.approx(0.6 / 0.9)
    assert vote.choice == "A"


def test_a_quote_may_belong_to_the_token_of_the_answer() -> None:
    place = TokenOptions(' "B"', ((' "B"', math.log(0.7)), (' "A"', math.log(0.3))))
    vote = read_pair_vote([TokenOptions('{"better":', ()), place, TokenOptions("}", ())])
    assert vote.first == pytest.approx(0.3)
    assert vote.second == pytest.approx(0.7)


@pytest.mark.parametrize("gap", [" : ", "\n:\n", ":"])
def test_blanks_around_the_colon_change_nothing(gap: str) -> None:
    place = TokenOptions("B", (("B", math.log(0.7)), ("A", math.log(0.3))))
    vote = read_pair_vote([TokenOptions(f'{{"better"{gap}"', ()), place, TokenOptions('"}', ())])
    assert vote.second == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("tokens", "why"),
    [
        ([], "no log-probabilities"),
        ([TokenOptions('{"worse": "A"}', ())], "no comparison"),
        (reply("A", A=0.2, X=0.8), "only 20% of the probability"),
    ],
)
def test_a_reply_without_an_answer_is_invalid(tokens: list[TokenOptions], why: str) -> None:
    with pytest.raises(InvalidReply, match=why):
        read_pair_vote(tokens)


def test_both_orders_agree_or_the_label_is_a_tie() -> None:
    assert soft_label(PairVote(0.9, 0.0, 0.1), PairVote(0.3, 0.0, 0.7)) == pytest.approx(0.8)
    assert soft_label(PairVote(0.9, 0.0, 0.1), PairVote(0.6, 0.0, 0.4)) == 0.5
    assert soft_label(chosen("A"), chosen("equal")) == pytest.approx(0.75)
    assert soft_label(chosen("equal"), chosen("equal")) == 0.5


async def test_a_judge_weighs_two_clips_with_one_short_reply() -> None:
    tokens = tuple(reply("B", A=0.25, B=0.75))
    model = ScriptedModel(Choice(json.dumps({"better": "B"}), "stop", tokens))
    judge, budget = Judge(SPEC, model), BudgetTracker(Budget())
    first, second = judge_input("s1", walk(2)), judge_input("s2", walk(5))
    vote = (await judge.weigh(first, second, budget)).vote
    assert vote is not None
    assert vote.preference == pytest.approx(0.25)
    assert await judge.compare(first, second, budget) == "B"
    assert model.asked == [1, 1]


def test_two_clips_fit_into_a_small_context() -> None:
    first, second = judge_input("s1", walk(12)), judge_input("s2", walk(15))
    small = SPEC.model_copy(update={"max_prompt_tokens": 4_096})
    content = build_pair_prompt(small, first, second, None).body["messages"][1]["content"]
    assert content == build_pair_prompt(SPEC, first, second, None).body["messages"][1]["content"]
    with pytest.raises(PromptTooLong):
        build_pair_prompt(small, first, second, context=2_300)


def test_the_short_comparison_asks_for_probabilities_and_no_reason() -> None:
    first, second = judge_input("s1", walk(2)), judge_input("s2", walk(5))
    short = build_pair_prompt(SPEC, first, second, None).body
    full = build_pair_prompt(SPEC.model_copy(update={"asking": "votes"}), first, second, None).body
    assert short["logprobs"] is True
    assert "reason" not in short["response_format"]["json_schema"]["schema"]["properties"]
    assert "reason" in full["response_format"]["json_schema"]["schema"]["properties"]
    assert "logprobs" not in full
    assert "reason" not in short["messages"][0]["content"].rpartition("Reply with")[2]
