"""Ids and keys refuse anything that could redirect a subject, a key or a path."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from shared.contracts.envelope import parse
from shared.contracts.ids import Digest, RunId, SegmentId
from shared.errors import ContractError, Permanent
from shared.store import keys
from tests.events import segment_ready

_STEPS = [
    "../",
    "..\\",
    "%2e%2e/",
    "..%2f",
    "%252e%252e%252f",
    "....//",
    "..;/",
    "．．/",
    "‥/",
    "..\u2215",
    "\u202e../",
]
_ENDS = ["", "etc/passwd", "secret", "models", "\x00", "\n", ".json", "*", ">", "$JS.API.STREAM.DELETE.X", "con", "a b"]
_FORMS = ["{step}{end}", "run-1{step}{end}", "/{step}{end}", "{step}{step}{end}"]
TRAVERSALS = sorted({form.format(step=step, end=end) for form, step, end in itertools.product(_FORMS, _STEPS, _ENDS)})


def test_five_hundred_hostile_names_are_collected() -> None:
    assert len(TRAVERSALS) >= 500


@pytest.mark.parametrize("kind", [RunId, SegmentId, Digest])
def test_no_traversal_is_an_id(kind: type[RunId]) -> None:
    for text in TRAVERSALS:
        with pytest.raises(ValueError, match=r"is not (a|the name of a run)"):
            kind(text)


def test_no_traversal_is_a_store_key() -> None:
    for text in TRAVERSALS:
        for key in (text, f"models/{text}", f"models/runs/{text}/x"):
            with pytest.raises(Permanent, match="store key"):
                keys.split(key)


@pytest.mark.parametrize("field", ["run", "episode", "segment"])
def test_no_traversal_travels_in_an_event(field: str) -> None:
    event = json.loads(segment_ready().to_bytes())
    for text in TRAVERSALS:
        changed = {**event, "data": {**event["data"], field: text}}
        with pytest.raises(ContractError, match="not a valid event") as caught:
            parse(json.dumps(changed).encode())
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize("text", ["demo\n", "Demo", "-demo", "demo-", "d.mo", "d_mo", "", "x" * 41, "dé", "d emo", "٣"])
def test_near_misses_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="1-40 lower-case letters, digits or inner hyphens"):
        RunId(text)


@pytest.mark.parametrize("value", [None, 7, b"demo", ["demo"]])
def test_non_text_value_is_no_id(value: Any) -> None:
    with pytest.raises(ValueError, match="is not the name of a run"):
        RunId(value)
    with pytest.raises(ValidationError):
        TypeAdapter(RunId).validate_python(value)


def test_a_refusal_shows_only_the_beginning_of_what_was_given() -> None:
    with pytest.raises(ValueError, match="is not the name of a run") as caught:
        RunId("x" * 10_000)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("text", ["a", "demo", "e0003-r02-v01-0007-s004", "0", "x" * 40])
def test_good_ids_are_accepted(text: str) -> None:
    assert RunId(text) == text


@given(st.text(max_size=60))
def test_an_id_is_safe_everywhere_or_no_id_at_all(text: str) -> None:
    try:
        run = RunId(text)
    except ValueError:
        return
    assert not set(run) & set("./\\*> \n\r\t\0%$:")
    assert keys.split(keys.run_summary(run)) == ("models", f"runs/{run}/summary.json")


@given(st.text(max_size=80))
def test_a_key_is_refused_or_stays_in_its_bucket(text: str) -> None:
    try:
        bucket, path = keys.split(text)
    except Permanent:
        return
    assert bucket in keys.BUCKETS
    assert path
    assert all(part not in ("", ".", "..") for part in path.split("/"))
