"""Only a reply that follows the schema exactly is a plan, and only macros of the grammar are in one."""

import json
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.trainer.executor.macros import GRAMMAR, MAX_LENGTH, Interact, MacroError, MoveTo, PushBlock, parse_macro
from services.trainer.planning.model_reply import read_plan, read_suggestion
from services.trainer.planning.plan import NoPlan, Plan
from services.trainer.planning.plan_prompt import PLAN_SCHEMA, SUGGESTION_SCHEMA
from shared.game.decoding.names import ACTIONS
from shared.llm.json_reply import InvalidReply

GOOD = {"sub_goal": "open the door", "macros": ["MOVE_TO 4,6", "PUSH_BLOCK 3,4 left"], "fallback": ["INTERACT yes"]}


def reply(**changes: Any) -> str:
    fields = {**GOOD, "confidence": 0.7, **changes}
    return json.dumps({name: value for name, value in fields.items() if value is not ...})


def test_reply_becomes_a_plan() -> None:
    found = read_plan(reply())
    assert found == Plan("open the door", (MoveTo((4, 6)), PushBlock((3, 4), 3)), (Interact(answer=0),), 0.7)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "MOVE_TO 4,6",
        f"Here is the plan: {reply()}",
        f"```json\n{reply()}\n```",
        reply(extra=1),
        reply(sub_goal=...),
        reply(sub_goal=3),
        reply(macros=[]),
        reply(macros="MOVE_TO 4,6"),
        reply(macros=["MOVE_TO 4,6", "PRESS START"]),
        reply(macros=["move_to 4,6"]),
        reply(macros=["MOVE_TO 4,6; USE_ITEM bombs"]),
        reply(macros=["MOVE_TO 4,6\n"]),
        reply(macros=["MOVE_TO 444,6"]),
        reply(macros=["USE_ITEM master key"]),
        reply(macros=["MOVE_TO 4,6"] * 13),
        reply(macros=[4]),
        reply(macros=[["MOVE_TO 4,6"]]),
        reply(fallback=["JUMP"]),
        reply(fallback=None),
        reply(confidence=1.5),
        reply(confidence="high"),
        reply(confidence=True),
        reply()[:-1] + ', "confidence": 0.1}',
        reply().replace("0.7", "NaN"),
        "[" * 3_000,
        reply(sub_goal="x" * 5_000),
    ],
)
def test_anything_else_is_no_plan(text: str) -> None:
    found = read_plan(text)
    assert isinstance(found, NoPlan)
    assert found.reason.startswith("invalid: ")


@given(st.from_regex(GRAMMAR, fullmatch=True).filter(lambda text: len(text) <= MAX_LENGTH))
def test_schema_admits_nothing_that_the_grammar_refuses(text: str) -> None:
    if text.endswith("\n"):  # `$` of Python; JSON schemas know no such exception
        return
    assert str(parse_macro(text)).split()[0] == text.split()[0]


@given(
    st.from_regex(r"(MOVE_TO|PUSH_BLOCK|USE_ITEM|INTERACT)( -?[0-9]{1,3},[0-9]{1,2})?( [a-z]{2,8})?", fullmatch=True)
)
def test_schema_and_grammar_agree(text: str) -> None:
    try:
        parse_macro(text)
        parsed = True
    except MacroError:
        parsed = False
    assert (re.fullmatch(GRAMMAR, text) is not None) == parsed


def test_what_is_read_as_a_plan_follows_the_schema() -> None:
    jsonschema.validate(json.loads(reply()), PLAN_SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(reply(macros=["PRESS START"])), PLAN_SCHEMA)


def test_suggestion_is_an_action_but_never_start() -> None:
    text = json.dumps({"action": "up", "scene": "a door above", "confidence": 1})
    jsonschema.validate(json.loads(text), SUGGESTION_SCHEMA)
    found = read_suggestion(text)
    assert (found.action, found.scene, found.confidence) == (ACTIONS.index("up"), "a door above", 1.0)
    for wrong in (text.replace("up", "start"), text.replace("up", "UP"), text.replace('"scene"', '"seen"'), "up", "{}"):
        with pytest.raises(InvalidReply):
            read_suggestion(wrong)
