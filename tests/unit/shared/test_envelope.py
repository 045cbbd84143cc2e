"""Parsing any bytes quickly gives an event or one short sentence."""

import json
import random
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from shared.contracts.envelope import MAX_EVENT_BYTES, Envelope, event_id, parse, wrap
from shared.contracts.events import SegmentExported
from shared.contracts.ids import Digest
from shared.errors import ContractError
from tests.events import epoch_finished, rm_ready, scores_ready, segment_ready

GOOD = [event.to_bytes() for event in (segment_ready(), scores_ready(), epoch_finished(), rm_ready())]


def outcome(raw: bytes) -> Envelope | str:
    """The event, or the sentence; any other error fails the test."""
    try:
        return parse(raw)
    except ContractError as error:
        sentence = str(error)
    assert 0 < len(sentence) < 400
    return sentence


@given(st.binary(max_size=2_000))
@example(b"")
@example(b"\xff\xfe\x00")
@example(b'{"data":' * 1_000)
@example(b"[" * 8_000)
@example(b'"' + b"\\ud800" * 100 + b'"')
@example(b'{"epoch": 1e999}')
@example(b'{"epoch": NaN}')
@example(b"9" * 8_000)
def test_arbitrary_bytes_are_refused_with_a_sentence(raw: bytes) -> None:
    assert isinstance(outcome(raw), str)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


@given(st.sampled_from(GOOD), st.sampled_from([*json.loads(GOOD[0])]), json_values)
def test_a_good_event_with_one_wrong_attribute_is_read_or_refused(raw: bytes, name: str, value: object) -> None:
    outcome(json.dumps({**json.loads(raw), name: value}).encode())


@given(st.sampled_from(GOOD), st.sampled_from([*json.loads(GOOD[0])["data"]]), json_values)
def test_a_good_event_with_one_wrong_field_is_read_or_refused(raw: bytes, name: str, value: object) -> None:
    event = json.loads(raw)
    outcome(json.dumps({**event, "data": {**event["data"], name: value}}).encode())


@pytest.mark.slow
def test_a_hundred_thousand_mutations_give_only_the_contract_error_quickly() -> None:
    rng, times, refused = random.Random(7), [], 0
    for _ in range(100_000):
        raw = bytearray(rng.choice(GOOD))
        for _ in range(rng.randint(1, 8)):
            _mutate(raw, rng)
        started = time.perf_counter()
        refused += isinstance(outcome(bytes(raw)), str)
        times.append(time.perf_counter() - started)
    assert refused > 50_000
    assert sorted(times)[99_000] < 0.005


def _mutate(raw: bytearray, rng: random.Random) -> None:
    place = rng.randrange(len(raw))
    kind = rng.randrange(4)
    if kind == 0:
        raw[place] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del raw[place : place + rng.randint(1, min(20, len(raw) - 1))]
    elif kind == 2:
        raw[place:place] = raw[place : place + rng.randint(1, 40)]
    else:
        raw[place:place] = rng.choice([b"null", b"1e999", b"NaN", b'"', b"}", b"[", b"\\u0000", b"../", b"\xff"])
    if not raw:
        raw += b"x"


def test_an_event_of_just_the_limit_is_read() -> None:
    raw = segment_ready().to_bytes()
    assert isinstance(outcome(raw.ljust(MAX_EVENT_BYTES)), Envelope)


def test_an_event_above_the_limit_is_refused_by_its_size() -> None:
    assert outcome(b" " * (MAX_EVENT_BYTES + 1)) == "event of 8193 bytes: the limit is 8192"


@settings(max_examples=50)
@given(st.integers(0, 99_999), st.integers(0, 1_000))
def test_id_depends_only_on_the_announced_object(number: int, epoch: int) -> None:
    event = segment_ready(number, epoch=epoch)
    again = wrap(event.data, source="reconciler", fence=9)
    assert again.id == event.id == event_id(event.data)
    assert segment_ready(number + 1, epoch=epoch).id != event.id
    assert parse(event.to_bytes()) == event


def test_id_differs_by_object_and_by_event_type() -> None:
    ready = segment_ready().data
    changed = ready.model_copy(update={"digest": Digest("0" * 64)})
    exported = SegmentExported.model_validate(ready.model_dump())
    assert len({event_id(data) for data in (ready, changed, exported)}) == 3


def test_fence_and_trace_travel_with_the_event() -> None:
    sent = wrap(segment_ready().data, source="judge", fence=7).model_copy(update={"traceparent": "00-trace"})
    event = parse(sent.to_bytes())
    assert (event.source, event.fence, event.traceparent) == ("judge", 7, "00-trace")


def test_an_envelope_of_another_type_than_its_data_cannot_be_made() -> None:
    event = segment_ready()
    with pytest.raises(ValidationError, match="differ from its data"):
        Envelope(**{**dict(event), "type": "zelda.scores.ready.v1"})
