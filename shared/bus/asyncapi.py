"""Writes the bus as an AsyncAPI 3 document: `python -m shared.bus.asyncapi [--check]`.

The document is derived from the topology and refers to the schemas beside it; a test compares the committed file.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any, Final

from shared.bus.subjects import ROOT
from shared.bus.topology import ROLES, STREAMS
from shared.contracts.events import EVENTS, EventData
from shared.contracts.generate import ASYNCAPI, FOLDER
from shared.contracts.ids import ID_PATTERN

FILE: Final = FOLDER / ASYNCAPI


def document() -> dict[str, Any]:
    """The bus as an AsyncAPI 3 document: one channel an event, one operation a service and direction."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Zelda RLAIF event bus",
            "version": "1.0.0",
            "description": "CloudEvents 1.0 in structured JSON on NATS JetStream. An event announces an object in the "
            "store and carries its key and digest, never its content.",
        },
        "defaultContentType": "application/json",
        "channels": {event.NAME: _channel(event) for event in EVENTS},
        "operations": _operations(),
        "components": {"messages": {event.__name__: _message(event) for event in EVENTS}},
    }


def _channel(event: type[EventData]) -> dict[str, Any]:
    stream = next(stream for stream in STREAMS if event in stream.events)
    return {
        "address": f"{ROOT}.{{run}}.{event.NAME}",
        "description": f"{event.__doc__} Stream {stream.name}.",
        "parameters": {"run": {"description": f"run id, {ID_PATTERN}"}},
        "messages": {event.__name__: {"$ref": f"#/components/messages/{event.__name__}"}},
    }


def _message(event: type[EventData]) -> dict[str, Any]:
    payload = {
        "schemaFormat": "application/schema+json;version=draft-2020-12",
        "schema": {"$ref": f"{event.TYPE}.json"},
    }
    return {
        "name": event.TYPE,
        "title": event.__name__,
        "contentType": "application/cloudevents+json",
        "payload": payload,
    }


def _operations() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for service, role in ROLES.items():
        heard = {event for subscription in role.subscriptions for event in subscription.events}
        for event in EVENTS:
            if event in role.publishes:
                found[f"{service}.send.{event.NAME}"] = _operation("send", event)
            if event in heard:
                found[f"{service}.receive.{event.NAME}"] = _operation("receive", event)
    return found


def _operation(action: str, event: type[EventData]) -> dict[str, Any]:
    channel = f"#/channels/{event.NAME}"
    return {
        "action": action,
        "channel": {"$ref": channel},
        "messages": [{"$ref": f"{channel}/messages/{event.__name__}"}],
    }


def text() -> str:
    """The document as it is committed."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the file, or with `--check` return 1 when it is out of date."""
    parser = argparse.ArgumentParser(prog="python -m shared.bus.asyncapi", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the file is out of date")
    if not parser.parse_args(argv).check:
        FILE.write_text(text(), encoding="utf-8")
        return 0
    if FILE.exists() and FILE.read_text(encoding="utf-8") == text():
        return 0
    sys.stdout.write(f"out of date: {FILE.name}; run `python -m shared.bus.asyncapi`\n")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
