"""A service as a real process on a real bus: start, probes, work, and the orderly and the disorderly end."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shared.bus.jetstream.bus import NatsBus, connect
from shared.bus.provision import provision
from shared.bus.topology import JUDGE_SEGMENTS, REWARDMODEL_SCORES, SEGMENTS
from shared.store.object_store import local_store
from tests.events import segment_ready
from tests.servers import NatsServer, free_ports

ROOT = Path(__file__).parents[2]


class Process:
    """The stub service, with settings in its environment."""

    def __init__(self, server: NatsServer, store: Path, **settings: str) -> None:
        [self.port] = free_ports(1)
        self.log = store / "service.log"
        self.environment = {
            **os.environ,
            "ZELDA_BUS__URL": server.url,
            "ZELDA_STORE__URL": f"file://{store}",
            "ZELDA_HTTP__PORT": str(self.port),
            **settings,
        }
        self.process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "tests.integration.stub_service"]
        with self.log.open("wb") as log:
            return subprocess.Popen(command, env=self.environment, cwd=ROOT, stderr=log)

    def get(self, path: str) -> tuple[int, str]:
        """Status and body; status 0 while no process listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=2) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def wait_live(self) -> None:
        self._wait("/livez")

    def wait_ready(self) -> None:
        self._wait("/readyz")

    def _wait(self, path: str) -> None:
        deadline = time.monotonic() + 30
        while self.get(path)[0] != 200:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)

    def end(self, seconds: float = 30) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def lines(self) -> list[dict[str, object]]:
        """The log, which must be JSON to the last line."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@contextmanager
def service(server: NatsServer, store: Path, **settings: str) -> Iterator[Process]:
    """The process, killed at the end if it still runs."""
    process = Process(server, store, **settings)
    try:
        yield process
    finally:
        if process.process.poll() is None:
            process.process.kill()
            process.process.wait(10)


async def pending(bus: NatsBus, wanted: int, seconds: float = 10) -> None:
    """Wait until the judge's consumer has so many unanswered messages."""
    deadline = time.monotonic() + seconds
    while await bus.pending(JUDGE_SEGMENTS) != wanted:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


async def test_a_service_serves_probes_and_drains_with_exit_code_0(
    nats_server: NatsServer, bus: NatsBus, tmp_path: Path
) -> None:
    with service(nats_server, tmp_path) as process:
        await asyncio.to_thread(process.wait_ready)
        for number in range(20):
            await bus.publish(segment_ready(number))
        await pending(bus, 0)
        assert await bus.pending(REWARDMODEL_SCORES) == 20
        assert process.get("/livez") == (200, '{"ok":true,"reasons":[]}')
        assert process.get("/anything") == (200, "the service's own page")
        metrics = process.get("/metrics")[1]
        assert 'zelda_bus_deliveries_total{consumer="judge-segments",outcome="done"} 20.0' in metrics
        assert await asyncio.to_thread(process.end) == 0
        assert [line["event"] for line in process.lines()][-1] == "service drained"
    assert len(await local_store(tmp_path).list("episodes/scores/demo/")) == 20


async def test_work_in_progress_is_finished_before_the_exit(
    nats_server: NatsServer, bus: NatsBus, tmp_path: Path
) -> None:
    with service(nats_server, tmp_path, ZELDA_STUB__WORK_S="2") as process:
        await asyncio.to_thread(process.wait_ready)
        await bus.publish(segment_ready())
        await asyncio.sleep(0.5)
        assert await asyncio.to_thread(process.end) == 0
    assert await bus.pending(JUDGE_SEGMENTS) == 0
    assert await bus.pending(REWARDMODEL_SCORES) == 1


@pytest.mark.slow
async def test_the_next_process_finishes_the_work_of_a_killed_one(
    nats_server: NatsServer, bus: NatsBus, tmp_path: Path
) -> None:
    """The first process dies after its commit object, before the acknowledgement."""
    with service(nats_server, tmp_path, ZELDA_FAILPOINTS="judge.before_ack=exit") as process:
        await asyncio.to_thread(process.wait_ready)
        await bus.publish(segment_ready())
        assert await asyncio.to_thread(process.process.wait, 15) == -signal.SIGKILL
    assert await bus.pending(JUDGE_SEGMENTS) == 1
    with service(nats_server, tmp_path) as process:
        await asyncio.to_thread(process.wait_ready)
        await pending(bus, 0, seconds=40)  # the acknowledgement time of the dead process
        assert await asyncio.to_thread(process.end) == 0
    # The same result was published twice under one id: the bus kept one.
    assert (await bus.context.stream_info(SEGMENTS.name)).state.messages == 1 + 1  # the segment waits for the exporter


async def test_missing_streams_give_exit_code_4(nats_server: NatsServer, bus: NatsBus, tmp_path: Path) -> None:
    await bus.context.delete_stream(SEGMENTS.name)
    with service(nats_server, tmp_path) as process:
        assert await asyncio.to_thread(process.process.wait, 20) == 4
        assert "run `python -m shared.bus.provision`" in process.log.read_text()


async def test_a_changed_stream_is_rejected_with_the_difference(
    nats_server: NatsServer, bus: NatsBus, tmp_path: Path
) -> None:
    config = (await bus.context.stream_info(SEGMENTS.name)).config
    await bus.context.update_stream(config.evolve(max_bytes=1024))
    with service(nats_server, tmp_path) as process:
        assert await asyncio.to_thread(process.process.wait, 20) == 4
        assert "max_bytes: declared 268435456, found 1024" in process.log.read_text()


async def test_a_port_in_use_is_reported_immediately(nats_server: NatsServer, bus: NatsBus, tmp_path: Path) -> None:
    with service(nats_server, tmp_path) as first:
        await asyncio.to_thread(first.wait_ready)
        (tmp_path / "second").mkdir()
        with service(nats_server, tmp_path / "second", ZELDA_HTTP__PORT=str(first.port)) as second:
            assert await asyncio.to_thread(second.process.wait, 5) == 2
            assert f"ZELDA_HTTP__PORT {first.port}" in second.log.read_text()


async def test_readiness_follows_the_bus_and_liveness_does_not(tmp_path: Path) -> None:
    with NatsServer(tmp_path) as server:
        await provision(server.settings)
        with service(server, tmp_path) as process:
            await asyncio.to_thread(process.wait_ready)
            server.kill()
            async with asyncio.timeout(20):
                while process.get("/readyz")[0] != 503:  # noqa: ASYNC110 - another process has no event to offer
                    await asyncio.sleep(0.05)
            assert process.get("/livez")[0] == 200
            server.start()
            await asyncio.to_thread(process.wait_ready)
            other = await connect(server.settings, "test")
            await other.publish(segment_ready())
            await pending(other, 0, seconds=5)
            await other.close()
            assert await asyncio.to_thread(process.end) == 0


async def test_the_start_waits_for_an_unreachable_bus(tmp_path: Path) -> None:
    server = NatsServer(tmp_path)
    with service(server, tmp_path) as process:
        await asyncio.to_thread(process.wait_live)
        assert process.get("/readyz") == (503, '{"ok":false,"reasons":["starting"]}')
        with server:
            await provision(server.settings)
            await asyncio.to_thread(process.wait_ready)
            assert await asyncio.to_thread(process.end) == 0


async def test_a_signal_ends_the_wait_for_the_bus(tmp_path: Path) -> None:
    with service(NatsServer(tmp_path), tmp_path) as process:
        await asyncio.to_thread(process.wait_live)
        assert await asyncio.to_thread(process.end, 5) == 0
