"""The published schemas are up to date, old documents stay readable, and other tools can parse our events."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from pydantic import ValidationError

from shared.bus import asyncapi
from shared.bus.topology import ROLES
from shared.contracts import generate
from shared.contracts.base import Contract
from shared.contracts.envelope import Envelope, parse
from shared.contracts.events import EVENT_BY_TYPE, EVENTS
from shared.contracts.run import RunConfig
from shared.errors import ContractError

SAMPLES = Path(__file__).parent / "samples"
EVENT_SAMPLES = sorted(SAMPLES.glob("zelda.*.json"))
DOCUMENT_SAMPLES = sorted(set(SAMPLES.glob("*.json")) - set(EVENT_SAMPLES))


def test_committed_schemas_are_up_to_date() -> None:
    assert generate.stale() == [], "run `python -m shared.contracts.generate` and commit shared/contracts/schemas"
    assert asyncapi.FILE.read_text(encoding="utf-8") == asyncapi.text(), "run `python -m shared.bus.asyncapi`"


def test_every_event_type_has_a_sample_of_its_first_version() -> None:
    assert {path.stem for path in EVENT_SAMPLES} >= set(EVENT_BY_TYPE)


@pytest.mark.parametrize("path", EVENT_SAMPLES, ids=lambda path: path.stem)
def test_current_models_read_old_events_without_losing_fields(path: Path) -> None:
    raw = path.read_bytes()
    event = parse(raw)
    assert type(event.data) is EVENT_BY_TYPE[path.stem]
    assert _contains(json.loads(raw), json.loads(event.to_bytes()))


@pytest.mark.parametrize("path", DOCUMENT_SAMPLES, ids=lambda path: path.stem)
def test_current_models_read_old_documents_without_losing_fields(path: Path) -> None:
    model: type[Contract] = generate.DOCUMENTS[path.stem]
    raw = path.read_bytes()
    assert _contains(json.loads(raw), json.loads(model.from_bytes(raw).to_bytes()))


def _contains(old: Any, new: Any) -> bool:
    """Whether `new` contains everything in `old`; it may contain more."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(name in new and _contains(value, new[name]) for name, value in old.items())
    if isinstance(old, list):
        return isinstance(new, list) and len(old) == len(new) and all(map(_contains, old, new))
    return bool(old == new)


@pytest.mark.parametrize("path", EVENT_SAMPLES + DOCUMENT_SAMPLES, ids=lambda path: path.stem)
def test_samples_are_valid_under_their_published_schema(path: Path) -> None:
    schema = json.loads((generate.FOLDER / path.name).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(path.read_text()), schema)


@pytest.mark.parametrize("path", EVENT_SAMPLES, ids=lambda path: path.stem)
def test_unknown_fields_of_a_newer_event_are_ignored(path: Path) -> None:
    newer = json.loads(path.read_text())
    newer |= {"newattribute": "x", "data": {**newer["data"], "new_field": {"deep": [1]}}}
    event = parse(json.dumps(newer).encode())
    assert "new_field" not in json.loads(event.to_bytes())["data"]


@pytest.mark.parametrize("name", ["run-record", "epoch-start"])
def test_unknown_fields_of_a_newer_configuration_are_ignored(name: str) -> None:
    newer = json.loads((SAMPLES / f"{name}.json").read_text())
    old = generate.DOCUMENTS[name].from_bytes(json.dumps(newer).encode())
    newer["config"] |= {"new_field": 1}
    newer["config"]["shaping"] = {**newer["config"].get("shaping", {}), "new_field": {"deep": [1]}}
    assert generate.DOCUMENTS[name].from_bytes(json.dumps(newer).encode()) == old


def test_a_requested_configuration_rejects_unknown_fields() -> None:
    for asked in ({"epoch_step": 9}, {"shaping": {"weight": 1}}, {"sampling": {"all": True}}):
        with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
            RunConfig.model_validate(asked)


@pytest.mark.parametrize("path", EVENT_SAMPLES, ids=lambda path: path.stem)
def test_the_cloudevents_package_parses_our_events(path: Path) -> None:
    ours = parse(path.read_bytes())
    theirs = JSONFormat().read(CloudEvent, ours.to_bytes())
    assert (theirs.get_id(), theirs.get_type(), theirs.get_source()) == (ours.id, ours.type, ours.source)
    assert theirs.get_subject() == ours.data.key
    assert isinstance(theirs.get_time(), datetime)
    assert theirs.get_time() == ours.time
    assert theirs.get_extension("runid") == ours.runid
    assert theirs.get_data() == json.loads(ours.data.to_bytes())


def test_every_asyncapi_reference_resolves() -> None:
    document = json.loads((generate.FOLDER / "asyncapi.json").read_text())
    references = list(_references(document))
    assert len(references) > 30
    for reference in references:
        if reference.startswith("#/"):
            target = document
            for part in reference[2:].split("/"):
                target = target[part]
        else:
            assert (generate.FOLDER / reference).is_file()


def _references(node: Any) -> Any:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def test_asyncapi_operations_match_the_declared_roles() -> None:
    operations = asyncapi.document()["operations"]
    for event in EVENTS:
        assert any(name.endswith(f".send.{event.NAME}") for name in operations)
    received = {name for name in operations if ".receive." in name}
    declared = {
        f"{service}.receive.{event.NAME}"
        for service, role in ROLES.items()
        for subscription in role.subscriptions
        for event in subscription.events
    }
    assert received == declared


def test_an_envelope_that_contradicts_its_data_is_rejected() -> None:
    sample = json.loads(EVENT_SAMPLES[0].read_text())
    for change in ({"runid": "other"}, {"epoch": 77}, {"type": "zelda.scores.ready.v1"}, {"specversion": "0.3"}):
        changed = sample | change
        if changed == sample:
            continue
        with pytest.raises(ContractError, match="not a valid event"):
            parse(json.dumps(changed).encode())


def test_events_are_small() -> None:
    for path in EVENT_SAMPLES:
        event = Envelope.model_validate_json(path.read_bytes())
        assert len(event.to_bytes()) < 1500
