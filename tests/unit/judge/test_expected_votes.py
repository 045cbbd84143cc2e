"""Votes read from probabilities: the mean of the distribution at each number, or a reason why there is none."""

import json
import math
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.judge.config import JudgesFile, JudgeSpec
from services.judge.domain.expected_votes import VoteDistribution, expected_score, read_distributions
from services.judge.domain.prompts import response_format, rubric_message
from services.judge.service.judge import Judge
from services.judge.telemetry import ROUTES
from shared.contracts.ids import JudgeName
from shared.contracts.scores import JudgeResult
from shared.llm.budget import Budget, BudgetTracker
from shared.llm.completions import parse_completion
from shared.llm.json_reply import InvalidReply
from shared.llm.port import TokenOptions
from shared.llm.route import RouteClient
from shared.llm.route_spec import RouteSpec
from tests.unit.judge.segment_factory import judge_input

SPEC = JudgeSpec(
    name=JudgeName("one"),
    route="r",
    model="m",
    dimensions=("progress", "dialog"),
    asking="probabilities",
    spread_scale=2,
)


def token(text: str, **options: float) -> TokenOptions:
    """A token with the probabilities of its alternatives."""
    return TokenOptions(text, tuple((name, math.log(share)) for name, share in (options or {text: 1.0}).items()))


def reply(*numbers: TokenOptions, names: tuple[str, ...] = ("progress", "dialog")) -> list[TokenOptions]:
    tokens = [token("{")]
    for name, number in zip(names, numbers, strict=True):
        tokens += [token('"'), token(name), token('":'), token(" "), number, token(",")]
    return [*tokens[:-1], token("}")]


def test_the_mean_of_the_distribution_is_the_vote() -> None:
    found = read_distributions(reply(token("3", **{"3": 0.6, "4": 0.4}), token("0")), ("progress", "dialog"))
    assert found["progress"].mean == pytest.approx(3.4)
    assert found["progress"].most_probable == 3
    assert found["progress"].deviation == pytest.approx(math.sqrt(0.24))
    assert (found["dialog"].mean, found["dialog"].deviation) == (0, 0)


def test_other_tokens_do_not_count_and_the_rest_is_normalised() -> None:
    number = token("2", **{"2": 0.3, "1": 0.3, "two": 0.2, "7": 0.1, "12": 0.1})
    found = read_distributions(reply(number, token("0")), ("progress",))
    assert found["progress"].mean == pytest.approx(1.5)


def test_a_token_may_hold_more_than_the_digit() -> None:
    tokens = [token("{"), token('"progress"'), token(": 3", **{": 3": 0.5, ": 5": 0.5, "3": 0.0001}), token("}")]
    assert read_distributions(tokens, ("progress",))["progress"].mean == pytest.approx(4.0)


def test_a_name_in_another_name_is_not_its_place() -> None:
    tokens = reply(token("5"), token("1"), names=("no progress", "progress"))
    assert read_distributions(tokens, ("progress",))["progress"].mean == 1


@pytest.mark.parametrize(
    ("tokens", "reason"),
    [
        ([], "no log-probabilities"),
        (reply(token("3"), token("3"), names=("other", "dialog")), "no vote for progress"),
        (reply(token("3", **{"3": 0.2, "x": 0.8}), token("1")), "only 20% of the probability of progress"),
    ],
)
def test_a_reply_without_a_readable_distribution_is_invalid(tokens: list[TokenOptions], reason: str) -> None:
    with pytest.raises(InvalidReply, match=reason):
        read_distributions(tokens, ("progress",))


def test_agreement_is_that_of_three_sampled_votes() -> None:
    sure = VoteDistribution((0.0, 0.0, 0.0, 0.9, 0.1, 0.0))
    unsure = VoteDistribution((0.0, 0.0, 0.3, 0.4, 0.3, 0.0))
    assert sure.agreement == pytest.approx(0.73)
    assert expected_score(sure, 1.0).unanimous
    assert not expected_score(unsure, 1.0).unanimous


@given(st.lists(st.floats(0.001, 1), min_size=6, max_size=6))
def test_a_score_lies_within_the_scale(shares: list[float]) -> None:
    total = sum(shares)
    found = VoteDistribution(tuple(share / total for share in shares))
    score = expected_score(found, 1.0)
    assert 0 <= score.value <= 1
    assert score.deviation is not None
    assert 0 <= score.deviation <= 2.5 + 1e-9, "the widest distribution is half 0 and half 5"


def body(progress: dict[str, float], *, logprobs: bool = True) -> dict[str, Any]:
    """A completion of an OpenAI-compatible server."""
    tokens = reply(token("3", **progress), token("0"))
    content = [
        {"token": one.text, "top_logprobs": [{"token": name, "logprob": value} for name, value in one.options]}
        for one in tokens
    ]
    choice: dict[str, Any] = {"message": {"content": "".join(one.text for one in tokens)}, "finish_reason": "stop"}
    return {"choices": [{**choice, "logprobs": {"content": content} if logprobs else None}]}


async def judged(answer: dict[str, Any], requests: list[dict[str, Any]]) -> JudgeResult:
    def server(request: httpx.Request) -> httpx.Response:
        requests.append(json.loads(request.content))
        return httpx.Response(200, json=answer)

    route = RouteClient("r", RouteSpec.model_validate({"url": "http://server.test/v1"}), ROUTES)
    route.clients.transport = httpx.MockTransport(server)
    return await Judge(SPEC, route).evaluate(judge_input(), BudgetTracker(Budget()))


async def test_a_judge_asks_once_and_scores_the_expected_vote() -> None:
    requests: list[dict[str, Any]] = []
    result = await judged(body({"3": 0.5, "4": 0.5}), requests)
    (request,) = requests
    assert (request["n"], request["temperature"], request["logprobs"]) == (1, 0, True)
    assert "reason" not in request["response_format"]["json_schema"]["schema"]["properties"]
    assert result.status == "judged"
    assert result.dimensions["progress"].value == pytest.approx(0.7)
    assert result.dimensions["progress"].deviation == pytest.approx(1.0), "0.5, scaled by 2"
    assert result.reasons == []


async def test_a_server_without_probabilities_makes_the_judge_abstain() -> None:
    result = await judged(body({"3": 1.0}, logprobs=False), [])
    assert result.status == "abstained"
    assert result.reasons == ['the server returned no log-probabilities; use "asking: votes"']


@pytest.mark.parametrize("content", [3, [{"token": "x"}], [{"token": "x", "top_logprobs": [{"token": "x"}]}], ["x"]])
def test_malformed_probabilities_count_as_none(content: object) -> None:
    raw = json.dumps({"choices": [{"message": {"content": "{}"}, "logprobs": {"content": content}}]}).encode()
    assert parse_completion(raw, 0.1).choices[0].tokens == ()


def test_the_rubric_is_the_same_in_both_ways_of_asking() -> None:
    votes = rubric_message(("progress",), pictures=False)
    numbers = rubric_message(("progress",), pictures=False, reason=False)
    assert votes.partition("Reply with")[0] == numbers.partition("Reply with")[0]
    assert '"reason"' not in numbers
    assert "{" not in numbers
    assert response_format(("progress",), reason=False)["json_schema"]["schema"]["required"] == ["progress"]


def test_rules_have_no_probabilities() -> None:
    rules = {"name": "rules", "kind": "rules", "dimensions": ["progress"], "asking": "probabilities"}
    with pytest.raises(ValueError, match="rules have no probabilities"):
        JudgesFile.model_validate({"judges": [rules]})
