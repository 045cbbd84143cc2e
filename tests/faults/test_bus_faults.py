"""Faults of a real bus server: killed, paused, full, forbidden and poisoned; and readers that die."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.bus.consumer import Consumer
from shared.bus.consumer_loop import ConsumerLoop
from shared.bus.jetstream.bus import NatsBus, connect
from shared.bus.provision import provision
from shared.bus.topology import JUDGE_SEGMENTS, REWARDMODEL_SCORES, SEGMENTS
from shared.config.settings import BusSettings
from shared.contracts.envelope import Envelope
from shared.errors import Fatal, Transient
from tests.events import rm_ready, scores_ready, segment_ready
from tests.faults.fault_proxy import FaultProxy, serve_proxy
from tests.servers import NatsServer
from tests.unit.shared.loop import until

Handler = Callable[[Envelope], Awaitable[Sequence[Envelope]]]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[NatsServer]:
    """A bus server of the test's own, which it may kill."""
    with NatsServer(tmp_path) as own:
        await provision(own.settings)
        yield own


@pytest.fixture
async def bus(server: NatsServer) -> AsyncIterator[NatsBus]:
    """One connection to the server."""
    client = await connect(server.settings, "judge")
    yield client
    await client.close()


class RecordingHandler:
    """A handler that records the segments it receives."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.times: list[float] = []

    async def __call__(self, event: Envelope) -> Sequence[Envelope]:
        self.keys.append(event.subject)
        self.times.append(time.monotonic())
        return []

    async def reaches(self, number: int, seconds: float) -> None:
        """Wait until `number` different segments were received."""
        deadline = time.monotonic() + seconds
        while len(set(self.keys)) < number:
            assert time.monotonic() < deadline, f"{len(set(self.keys))} of {number} seen"
            await asyncio.sleep(0.02)


class RunningLoop:
    """A running consumer loop on a connection."""

    def __init__(self, bus: NatsBus, handler: Handler, slots: int = 8, watch_s: float = 15.0) -> None:
        self.stop = asyncio.Event()
        self.loop = ConsumerLoop(bus, Consumer(replace(JUDGE_SEGMENTS, slots=slots), handler), watch_s=watch_s)
        self.task = asyncio.create_task(self.loop.run(self.stop))

    async def end(self) -> None:
        """Stop and drain."""
        self.stop.set()
        await asyncio.wait_for(self.task, 30)


async def test_a_restarted_bus_is_used_within_five_seconds_without_loss(server: NatsServer, bus: NatsBus) -> None:
    seen = RecordingHandler()
    running = RunningLoop(bus, seen)
    for number in range(10):
        await bus.publish(segment_ready(number))
    await seen.reaches(10, 5)
    for round_number in range(3):
        server.kill()
        await asyncio.sleep(0.5)
        server.start()
        answered = time.monotonic()
        other = await connect(server.settings, "trainer")
        await other.publish(segment_ready(10 + round_number))
        await seen.reaches(11 + round_number, 6)
        assert seen.times[-1] - answered < 5
        await other.close()
    await running.end()


async def test_publishing_through_a_restart_loses_and_repeats_nothing(server: NatsServer, bus: NatsBus) -> None:
    """Each publish is confirmed or raises Transient; repeats with the same id are stored once."""
    unconfirmed = 0

    async def publish_all() -> None:
        nonlocal unconfirmed
        for number in range(300):
            while True:
                try:
                    await bus.publish(segment_ready(number))
                    break
                except Transient:
                    unconfirmed += 1

    publishing = asyncio.create_task(publish_all())
    await asyncio.sleep(0.05)
    server.kill()
    await asyncio.sleep(1)
    server.start()
    await asyncio.wait_for(publishing, 60)
    assert (await bus.context.stream_info(SEGMENTS.name)).state.messages == 300


async def _unacknowledged(bus: NatsBus) -> int:
    """Number of messages that the server counts as delivered but unacknowledged."""
    return (await bus.context.consumer_info(SEGMENTS.name, JUDGE_SEGMENTS.name)).num_ack_pending or 0


async def test_after_an_outage_only_fetched_messages_are_pending(server: NatsServer, bus: NatsBus) -> None:
    for number in range(20):
        await bus.publish(segment_ready(number))
    server.kill()
    await _until(lambda: not bus.connected, 10)
    for _ in range(3):
        with pytest.raises(Transient, match="not connected"):
            await bus.fetch(JUDGE_SEGMENTS, 2, 0.2)
    server.start()
    await _until(lambda: bus.connected, 10)
    assert len(await bus.fetch(JUDGE_SEGMENTS, 2, 2)) == 2
    assert await _unacknowledged(bus) == 2


async def test_late_messages_are_consumed_before_the_next_fetch(server: NatsServer, bus: NatsBus) -> None:
    for number in range(20):
        await bus.publish(segment_ready(number))
    async with serve_proxy(FaultProxy(server.port)) as proxy:
        slow = await connect(BusSettings(url=f"nats://127.0.0.1:{proxy.port}"), "judge")
        proxy.delay = (0.6, 0.6)
        assert await slow.fetch(JUDGE_SEGMENTS, 2, 0.2) == []
        proxy.delay = (0.0, 0.0)
        await asyncio.sleep(2)  # the responses have arrived
        late = await _unacknowledged(bus)
        assert late >= 2
        taken = 0
        while taken < late:
            taken += len(await slow.fetch(JUDGE_SEGMENTS, 1, 0.5))
            assert await _unacknowledged(bus) == late
        assert len(await slow.fetch(JUDGE_SEGMENTS, 1, 0.5)) == 1
        assert await _unacknowledged(bus) == late + 1
        await slow.close()


async def test_a_paused_bus_is_detected_within_fifteen_seconds(server: NatsServer, bus: NatsBus) -> None:
    server.signal(signal.SIGSTOP)
    noticed = await _until(lambda: not bus.connected, 20)
    server.signal(signal.SIGCONT)
    assert noticed < 15
    seen = RecordingHandler()
    running = RunningLoop(bus, seen)
    other = await connect(server.settings, "trainer")
    await other.publish(segment_ready())
    await seen.reaches(1, 10)
    await other.close()
    await running.end()


async def test_an_unreachable_bus_raises_transient_without_hanging(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(Transient, match="not reached"):
        await connect(NatsServer(tmp_path).settings, "judge")
    assert time.monotonic() - started < 3


async def test_a_wrong_password_is_fatal(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("judge:wrong\n")
    users = 'authorization { users = [ {user: judge, password: "right"} ] }'
    with NatsServer(tmp_path, users) as server:
        settings = BusSettings(url=server.url, credentials_file=tmp_path / "credentials")
        with pytest.raises(Fatal, match="refuses the credentials of 'judge'"):
            await connect(settings, "judge")
        (tmp_path / "credentials").write_text("judge:right\n")
        bus = await connect(settings, "judge")
        assert bus.connected
        await bus.close()


async def test_a_forbidden_subject_is_fatal_and_named(tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("judge:right\n")
    allowed = '{publish: ["zelda.v1.*.scores.ready"], subscribe: ["_INBOX_judge.>"]}'
    users = (
        f'authorization {{ users = [ {{user: judge, password: "right", permissions: {allowed}}}, '
        '{user: admin, password: "admin"} ] }'
    )
    (tmp_path / "admin").write_text("admin:admin")
    with NatsServer(tmp_path, users) as server:
        await provision(BusSettings(url=server.url, credentials_file=tmp_path / "admin"))
        bus = await connect(BusSettings(url=server.url, credentials_file=tmp_path / "credentials"), "judge")
        await bus.publish(scores_ready())
        with pytest.raises(Fatal, match=r"'judge' may not publish on 'zelda\.v1\.demo\.rm\.ready'"):
            await bus.publish(rm_ready())
        await bus.close()


async def test_a_forbidden_fetch_is_fatal_and_named(tmp_path: Path) -> None:
    """Otherwise the service would stay ready and never receive a message."""
    (tmp_path / "credentials").write_text("judge:right\n")
    allowed = '{publish: ["$JS.API.CONSUMER.INFO.>"], subscribe: ["_INBOX_judge.>"]}'
    users = f'authorization {{ users = [ {{user: judge, password: "right", permissions: {allowed}}} ] }}'
    with NatsServer(tmp_path, users) as server:
        bus = await connect(BusSettings(url=server.url, credentials_file=tmp_path / "credentials"), "judge")
        with pytest.raises(Fatal, match="'judge' may not fetch for 'judge-segments'"):
            await bus.fetch(JUDGE_SEGMENTS, 1, 0.5)
        await bus.close()


async def _outcome(bus: NatsBus, number: int) -> str:
    try:
        await bus.publish(segment_ready(number))
    except Transient as error:
        return "refused" if "maximum bytes exceeded" in str(error) else str(error)
    return "stored"


async def _until(condition: Callable[[], bool], seconds: float) -> float:
    """Wait until the condition holds, and fail if it does not within `seconds`; return the seconds that it took."""
    started = time.monotonic()
    await until(condition, seconds)
    return time.monotonic() - started


async def test_full_stream_refuses_and_drops_nothing(server: NatsServer, bus: NatsBus) -> None:
    config = (await bus.context.stream_info(SEGMENTS.name)).config
    await bus.context.update_stream(config.evolve(max_bytes=8_000))
    outcomes = [await _outcome(bus, number) for number in range(12)]
    stored = outcomes.index("refused")
    assert 3 < stored < 12
    assert outcomes == ["stored"] * stored + ["refused"] * (12 - stored)
    assert await bus.pending(JUDGE_SEGMENTS) == stored
    await bus.context.update_stream(config)
    await bus.publish(segment_ready(stored))
    assert await bus.pending(JUDGE_SEGMENTS) == stored + 1


async def test_provisioning_repairs_a_changed_stream_and_keeps_its_messages(server: NatsServer, bus: NatsBus) -> None:
    await bus.publish(segment_ready())
    config = (await bus.context.stream_info(SEGMENTS.name)).config
    await bus.context.update_stream(config.evolve(max_bytes=8_000))
    with pytest.raises(Fatal, match="max_bytes: declared 268435456, found 8000"):
        await bus.ensure(JUDGE_SEGMENTS)
    await provision(server.settings)
    await bus.ensure(JUDGE_SEGMENTS)
    assert await bus.pending(JUDGE_SEGMENTS) == 1


async def test_a_consumer_deleted_during_a_fetch_is_recreated_immediately(bus: NatsBus) -> None:
    seen = RecordingHandler()
    running = RunningLoop(bus, seen, watch_s=15)
    await asyncio.sleep(0.3)
    await bus.context.delete_consumer(SEGMENTS.name, JUDGE_SEGMENTS.name)
    await asyncio.sleep(1.0)
    await bus.publish(segment_ready())
    await seen.reaches(1, 5)
    await running.end()


async def test_an_acknowledgement_survives_the_death_of_the_process(server: NatsServer) -> None:
    """Close the connection without a flush right after `ack` returned, as a kill does."""
    bus = await connect(server.settings, "judge")
    for number in range(20):
        await bus.publish(segment_ready(number))
    for delivery in await bus.fetch(JUDGE_SEGMENTS, 20, 2):
        await delivery.ack()
    transport: Any = bus._client._transport
    transport.close()
    await bus.close()
    other = await connect(server.settings, "judge")
    assert await other.pending(JUDGE_SEGMENTS) == 0
    await other.close()


async def test_no_message_goes_to_a_reader_that_has_left(server: NatsServer, bus: NatsBus) -> None:
    """The first reader drains in the middle of a waiting fetch; the message published next must reach the second."""
    first = await connect(server.settings, "judge")
    running = RunningLoop(first, RecordingHandler())
    await asyncio.sleep(0.3)
    await running.end()
    await first.close()
    await bus.publish(segment_ready())
    seen = RecordingHandler()
    second = RunningLoop(bus, seen)
    await seen.reaches(1, 1.5)
    await second.end()


async def test_closing_during_an_outage_raises_nothing(server: NatsServer) -> None:
    """With unsent data: a service that ends during an outage has an acknowledgement or a publish pending."""
    bus = await connect(server.settings, "judge")
    server.kill()
    await _until(lambda: not bus.connected, 10)
    publishing = asyncio.create_task(bus.publish(segment_ready()))
    await asyncio.sleep(0.1)
    await bus.close()
    publishing.cancel()
    await asyncio.wait([publishing])
    assert not bus.closed.is_set()


async def test_invalid_messages_do_not_delay_good_events(bus: NatsBus) -> None:
    seen = RecordingHandler()
    running = RunningLoop(bus, seen)
    for number in range(50):
        await bus.publish(segment_ready(number))
        await bus.publish_raw("zelda.v1.demo.segment.ready", b"poison %d" % number, {})
    await seen.reaches(50, 10)
    await running.end()
    assert (await bus.context.stream_info("ZELDA_DEAD")).state.messages == 50
    assert await bus.pending(JUDGE_SEGMENTS) == 0


async def test_messages_and_their_duplicate_window_survive_a_restart(server: NatsServer, bus: NatsBus) -> None:
    await bus.publish(scores_ready())
    server.kill()
    await _until(lambda: not bus.connected, 10)
    server.start()
    await _until(lambda: bus.connected, 10)
    await bus.publish(scores_ready())
    assert await bus.pending(REWARDMODEL_SCORES) == 1
