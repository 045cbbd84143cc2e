"""Fixtures of the tests with real processes."""

from collections.abc import AsyncIterator

import pytest

from shared.bus.jetstream.bus import NatsBus, connect
from shared.bus.provision import provision
from tests.servers import NatsServer


@pytest.fixture
async def bus(nats_server: NatsServer) -> AsyncIterator[NatsBus]:
    """A provisioned bus without messages."""
    client = await connect(nats_server.settings, "test")
    await provision(nats_server.settings)
    yield client
    await client.close()
