"""Nothing that a server sends is believed unchecked: counts, probabilities, lists, and texts for a log line."""

import json
from typing import Any

import pytest

from shared.llm.completions import MAX_OPTIONS, error_message, parse_completion, parse_model_list
from shared.llm.port import Completion


def parsed(choices: list[dict[str, Any]], **usage: Any) -> Completion:
    return parse_completion(json.dumps({"choices": choices, "usage": usage}).encode(), 1.0)


@pytest.mark.parametrize("count", [-5, True, 1.5, "7", None, 10**9])
def test_an_impossible_number_of_tokens_counts_as_not_reported(count: Any) -> None:
    found = parsed([], prompt_tokens=count, completion_tokens=count, prompt_tokens_details={"cached_tokens": count})
    assert (found.prompt_tokens, found.output_tokens, found.cached_tokens) == (None, None, None)


def test_reported_tokens_count_zero_included() -> None:
    found = parsed([], prompt_tokens=7, completion_tokens=0, prompt_tokens_details={"cached_tokens": 3})
    assert (found.prompt_tokens, found.output_tokens, found.cached_tokens) == (7, 0, 3)


def test_a_flood_of_choices_is_cut() -> None:
    assert len(parsed([{"message": {"content": "a vote"}}] * 1_000).choices) == 64


def choice(*logprobs: float) -> dict[str, Any]:
    options = [{"token": str(place), "logprob": value} for place, value in enumerate(logprobs)]
    return {"message": {"content": "3"}, "logprobs": {"content": [{"token": "3", "top_logprobs": options}]}}


def test_a_flood_of_options_of_a_token_is_cut() -> None:
    (found,) = parsed([choice(*[-1.0] * 100)]).choices
    assert [len(token.options) for token in found.tokens] == [MAX_OPTIONS]


def test_a_probability_that_is_no_number_leaves_the_reply_without_any() -> None:
    sound, broken = parsed([choice(-0.5, float("-inf")), choice(-0.5, float("nan"))]).choices
    assert [dict(token.options) for token in sound.tokens] == [{"0": -0.5, "1": float("-inf")}]
    assert (broken.content, broken.tokens) == ("3", ())


def test_a_model_of_no_context_length_has_an_unknown_one() -> None:
    models = {"data": [{"id": "a", "max_model_len": 0}, {"id": "b", "max_model_len": 4_096}, {"id": "c"}]}
    assert parse_model_list(json.dumps(models).encode()) == {"a": None, "b": 4_096, "c": None}


@pytest.mark.parametrize("body", [b"", b"[]", b'{"data": 3}', b'{"data": [{"name": "a"}]}', b"[" * 100_000])
def test_what_is_no_list_of_models_has_none(body: bytes) -> None:
    assert parse_model_list(body) == {}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "the prompt is too long"}}', "the prompt is too long"),
        (b'{"error": "no such model"}', "no such model"),
        (b"upstream connect error\r\n\x1b[31mreset\x00", "upstream connect error   [31mreset"),
        (b"x" * 5_000, "x" * 200),
        (b"\xff\n", "\ufffd"),
    ],
)
def test_a_servers_message_fits_on_a_log_line(body: bytes, said: str) -> None:
    assert error_message(body) == said
