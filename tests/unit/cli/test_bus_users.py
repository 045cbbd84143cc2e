"""The bus of a local system: each service has a user of its own, which may do what its part needs and no more."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.errors import Error

from cli.stack.layout import StackLayout
from cli.stack.process import SupervisedProcess
from cli.stack.servers import OPERATOR, bus_credentials, nats_spec
from cli.stack.services import SERVICES
from shared.bus.subjects import pattern
from shared.contracts.events import SegmentReady
from shared.contracts.ids import RunId
from tests.servers import free_ports

REPORTED_S = 0.5  # the client reports a refusal in a task of its own
SEGMENT = pattern(SegmentReady, RunId("some-run"))


@pytest.fixture
async def url(tmp_path: Path) -> AsyncIterator[str]:
    """The address of a running bus of a local system in `tmp_path`."""
    (port,) = free_ports(1)
    bus = SupervisedProcess(nats_spec(StackLayout(tmp_path), port), tmp_path / "bus.log", lambda _: None)
    await bus.start()
    yield f"nats://127.0.0.1:{port}"
    await bus.stop()


@asynccontextmanager
async def connection(
    url: str, errors: list[str], user: str | None = None, password: str | None = None
) -> AsyncIterator[Client]:
    """A connection that collects what the server refuses."""

    async def note(error: Exception) -> None:
        errors.append(str(error))

    client = Client()
    try:
        options = {"error_cb": note, "allow_reconnect": False, "connect_timeout": 10}
        await client.connect(url, user=user, password=password, **options)  # type: ignore[arg-type]
        yield client
    finally:
        await client.close()


def login(folder: Path, user: str) -> dict[str, str]:
    """User and password as the service reads them."""
    name, _, password = bus_credentials(StackLayout(folder), user).read_text().partition(":")
    assert name == user
    return {"user": name, "password": password}


async def refused(url: str, subject: str, **login: str) -> bool:
    """Whether the bus refuses this user's message."""
    errors: list[str] = []
    async with connection(url, errors, **login) as client:
        await client.publish(subject, b"{}")
        await client.flush(10)
        await asyncio.sleep(REPORTED_S)
    return any("permissions violation" in error.lower() for error in errors)


async def test_nobody_connects_without_a_user(url: str) -> None:
    errors: list[str] = []
    with pytest.raises(Error):
        async with connection(url, errors):
            pass
    assert any("authorization violation" in error.lower() for error in errors)


async def test_users_of_services_have_different_passwords(url: str, tmp_path: Path) -> None:
    assert len({login(tmp_path, name)["password"] for name in (*SERVICES, OPERATOR)}) == len(SERVICES) + 1


@pytest.mark.parametrize("name", SERVICES)
async def test_a_service_announces_only_its_own_work(url: str, tmp_path: Path, name: str) -> None:
    assert await refused(url, SEGMENT, **login(tmp_path, name)) == (name not in ("trainer", "coordinator"))
    assert await refused(url, "$JS.API.STREAM.DELETE.ZELDA_RUNS", **login(tmp_path, name))
    assert not await refused(url, "$JS.API.STREAM.DELETE.ZELDA_RUNS", **login(tmp_path, OPERATOR))
