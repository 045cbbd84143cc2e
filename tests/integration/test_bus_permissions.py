"""The deployed permissions on a real server: each service may use exactly its declared subjects."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from nats import errors as nats_errors

from services.coordinator.api.dead_letter_service import DeadLetterService
from shared.bus.jetstream.bus import AWAY, NatsBus, connect
from shared.bus.jetstream.dead_letters import NatsDeadLetters
from shared.bus.permissions import provision_permissions, service_permissions
from shared.bus.provision import provision
from shared.bus.topology import ROLES, stream_of
from shared.config.settings import BusSettings
from shared.contracts.envelope import Envelope, wrap
from shared.contracts.events import EVENTS, EventData, ExportRequested, ScoresReady, SegmentExported, SegmentReady
from shared.errors import Fatal
from tests.events import epoch_finished, segment_ready
from tests.servers import NatsServer

SEGMENTS = next(one for one in ROLES["judge"].subscriptions if one.name == "judge-segments")


def event(kind: type[EventData]) -> Envelope:
    """A valid event of this type."""
    fields: dict[str, Any] = epoch_finished().data.model_dump() | {"status": "judged", "state": "running"}
    if issubclass(kind, SegmentReady | ScoresReady | SegmentExported | ExportRequested):
        fields |= segment_ready().data.model_dump(include={"episode", "segment"})
    return wrap(kind.model_validate(fields), source="test")


def users() -> str:
    """The server's `authorization` block; each password equals its user's name."""
    lists = {name: service_permissions(name, role) for name, role in ROLES.items()}
    lists["provision"] = provision_permissions()
    lines = [
        f'{{user: {name}, password: "{name}", permissions: {{publish: {_quoted(allowed["publish"])}, '
        f"subscribe: {_quoted(allowed['subscribe'])}}}}}"
        for name, allowed in lists.items()
    ]
    return f"authorization {{ users = [ {', '.join(lines)} ] }}"


def _quoted(subjects: list[str]) -> str:
    return "[" + ", ".join(f'"{subject}"' for subject in subjects) + "]"


class Connections:
    """One connection per user, by name."""

    def __init__(self, buses: dict[str, NatsBus]) -> None:
        self._buses = buses

    def __getitem__(self, name: str) -> NatsBus:
        return self._buses[name]


@pytest.fixture
async def connections(tmp_path: Path) -> AsyncIterator[Connections]:
    """Connections of all deployed users to a provisioned server."""
    async with AsyncExitStack() as stack:
        server = stack.enter_context(NatsServer(tmp_path, users()))

        def settings(name: str) -> BusSettings:
            (tmp_path / name).write_text(f"{name}:{name}\n")
            return BusSettings(url=server.url, credentials_file=tmp_path / name)

        await provision(settings("provision"))
        buses = {}
        for name in (*ROLES, "provision"):
            buses[name] = await connect(settings(name), name)
            stack.push_async_callback(buses[name].close)
        yield Connections(buses)


async def _may_publish(bus: NatsBus, kind: type[EventData]) -> bool:
    try:
        await bus.publish(event(kind))
    except Fatal as error:
        return "may not publish" not in str(error)
    return True


async def test_a_service_may_publish_exactly_its_declared_events(connections: Connections) -> None:
    pairs = [(service, kind) for service in ROLES for kind in EVENTS]
    allowed = await asyncio.gather(*(_may_publish(connections[service], kind) for service, kind in pairs))
    declared = [kind in ROLES[service].publishes for service, kind in pairs]
    assert dict(zip(pairs, allowed, strict=True)) == dict(zip(pairs, declared, strict=True))


async def test_a_service_may_do_everything_its_loop_needs(connections: Connections) -> None:
    for kind in EVENTS:
        await connections["provision"].publish(event(kind))
    for service, role in ROLES.items():
        for subscription in role.subscriptions:
            bus = connections[service]
            await bus.ensure(subscription)
            assert await bus.pending(subscription) == len(subscription.events)
            [first, *others] = await bus.fetch(subscription, 10, 2)
            await first.in_progress()
            await first.nak(0)
            [again] = await bus.fetch(subscription, 1, 2)
            await again.reject("a reason")
            for delivery in others:
                await delivery.ack()
            assert await bus.pending(subscription) == 0
    letters = await NatsDeadLetters(connections["provision"]).list()
    assert {letter.consumer for letter in letters} == {s.name for role in ROLES.values() for s in role.subscriptions}


async def test_a_service_may_recreate_its_own_consumer(connections: Connections) -> None:
    await connections["provision"].context.delete_consumer(stream_of(SEGMENTS).name, SEGMENTS.name)
    await connections["judge"].ensure(SEGMENTS)
    assert await connections["judge"].pending(SEGMENTS) == 0


async def test_the_coordinator_replays_only_what_it_may_publish(connections: Connections) -> None:
    for number in range(2):
        await connections["trainer"].publish(segment_ready(number))
    for delivery in await connections["judge"].fetch(SEGMENTS, 2, 2):
        await delivery.reject("no manifest")
    service = DeadLetterService(connections["coordinator"])
    first, second = await service.list()
    await service.replay(first.number)
    assert [letter.number for letter in await service.list()] == [second.number]
    assert await connections["judge"].pending(SEGMENTS) == 1


@pytest.mark.parametrize(
    "subject",
    [
        "$JS.API.STREAM.PURGE.ZELDA_SEGMENTS",
        "$JS.API.STREAM.DELETE.ZELDA_RUNS",
        "$JS.API.STREAM.CREATE.X",
        "$JS.API.STREAM.MSG.DELETE.ZELDA_DEAD",
        "$JS.API.CONSUMER.DELETE.ZELDA_SEGMENTS.judge-segments",
        "$JS.API.CONSUMER.MSG.NEXT.ZELDA_SEGMENTS.exporter-segments",
        "zelda.dead.exporter-segments",
        "_INBOX_coordinator.x",
    ],
)
async def test_a_judge_may_not_access_foreign_subjects(connections: Connections, subject: str) -> None:
    bus = connections["judge"]
    with pytest.raises((nats_errors.TimeoutError, nats_errors.NoRespondersError)):
        await bus._client.request(subject, b"{}", timeout=0.5)
    assert subject.lower() in bus._denied


async def test_a_service_may_not_read_replies_to_another_service(connections: Connections) -> None:
    bus = connections["judge"]
    await bus._client.subscribe("_INBOX_coordinator.>")
    try:
        await bus._client.flush(timeout=1)
    except AWAY as error:
        raise AssertionError("the connection must survive a refused subscription") from error
    await asyncio.sleep(0.2)
    assert "_inbox_coordinator.>" in bus._denied
