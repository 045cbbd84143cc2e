"""Fixtures for all tests: real servers, started only when a test asks for one."""

import logging
import os
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from cli.stack import ports
from shared.telemetry import tracing
from tests.port_shares import share_of_ports
from tests.servers import NatsServer, S3Server

# Before a test imports torch. Four tests run at a time: one that calculated on both cores would hold up the others.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Workers run at the same time, and a port is free until its server starts: each worker has ports of its own.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
ports.PORT_RANGE = share_of_ports(WORKER, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))
# A busy machine is slow, and that is no fault: no example has a time limit.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture(autouse=True)
def _no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the `ZELDA_*` variables of the developer's shell from the tests."""
    for name in os.environ:
        if name.startswith("ZELDA_"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """Logging is global: give the other tests theirs back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


@pytest.fixture
def tracer_provider(monkeypatch: pytest.MonkeyPatch) -> TracerProvider:
    """What a process with a collector has; only for this test."""
    provider = TracerProvider()
    monkeypatch.setattr(tracing, "_TRACER", provider.get_tracer("test"))
    return provider


@pytest.fixture
def spans(tracer_provider: TracerProvider) -> InMemorySpanExporter:
    """The ended spans of this process, as if it sent them to a collector."""
    exporter = InMemorySpanExporter()
    tracer_provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter


@pytest.fixture
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """An empty NATS server with JetStream. It starts in 30 ms; one that deletes streams can fail to make new ones."""
    with NatsServer(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server, one process per test session."""
    with S3Server(tmp_path_factory.mktemp("s3")) as server:
        yield server
