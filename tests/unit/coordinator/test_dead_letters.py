"""Dead letters over REST: each token reads the reasons, operators replay what the coordinator may publish."""

from pathlib import Path

import pytest

from services.coordinator.api.dead_letter_service import FRESH_S, MAX_LISTED, DeadLetterService
from services.coordinator.domain.events import SOURCE, export_requested
from shared.bus.memory import MemoryBus
from shared.bus.port import Subscription
from shared.bus.topology import EXPORTER_SEGMENTS, JUDGE_SEGMENTS
from shared.contracts.envelope import wrap
from shared.contracts.events import SegmentReady
from shared.store import keys
from shared.store.port import NotFound
from tests.events import segment_ready
from tests.unit.coordinator.api_client import VIEWER, client
from tests.unit.coordinator.harness import Harness


async def reject_all(bus: MemoryBus, subscription: Subscription, reason: str) -> None:
    """Turn every waiting event of a consumer into a dead letter."""
    for delivery in await bus.fetch(subscription, 100, 0):
        await delivery.reject(reason)


async def test_a_viewer_reads_the_reason_of_a_dead_letter(tmp_path: Path) -> None:
    harness = Harness()
    event = segment_ready(0)
    await harness.bus.publish(event)
    await reject_all(harness.bus, JUDGE_SEGMENTS, "the archive is damaged")
    async with client(harness, tmp_path, VIEWER) as http:
        [letter] = (await http.get("/dead-letters")).json()
        refused = await http.post(f"/dead-letters/{letter['number']}/replay")
    assert letter["reason"] == "the archive is damaged"
    assert (letter["run"], letter["event"]) == (event.runid, "segment.ready")
    assert (letter["consumer"], letter["deliveries"], letter["replayable"]) == ("judge-segments", 1, True)
    assert refused.status_code == 403


async def test_a_replayed_event_reaches_its_consumer_again(tmp_path: Path) -> None:
    harness = Harness()
    await harness.bus.publish(segment_ready(0))
    await reject_all(harness.bus, JUDGE_SEGMENTS, "no manifest")
    async with client(harness, tmp_path) as http:
        [letter] = (await http.get("/dead-letters")).json()
        path = f"/dead-letters/{letter['number']}/replay"
        response = await http.post(path)
        assert (response.status_code, response.json()) == (202, {"replayed": letter["number"]})
        assert (await http.get("/dead-letters")).json() == []
        again = await http.post(path)
    assert await harness.bus.pending(JUDGE_SEGMENTS) == 1
    assert again.status_code == 404
    assert again.json()["detail"].startswith(f"no dead letter {letter['number']}: `zelda dlq list`")


@pytest.mark.parametrize(
    ("subject", "event", "run"),
    [
        ("zelda.v1.demo.scores.ready", "scores.ready", "demo"),
        ("zelda.v1.Not a run.scores.ready", "scores.ready", None),
        ("$JS.EVENT.ADVISORY.scores.ready", None, None),
    ],
)
async def test_a_foreign_event_is_left_to_the_command_line(
    tmp_path: Path, subject: str, event: str | None, run: str | None
) -> None:
    harness = Harness()
    harness.bus.inject(b"{", subject)
    await reject_all(harness.bus, EXPORTER_SEGMENTS, "no event")
    async with client(harness, tmp_path) as http:
        [letter] = (await http.get("/dead-letters")).json()
        response = await http.post(f"/dead-letters/{letter['number']}/replay")
        assert len((await http.get("/dead-letters")).json()) == 1
    assert (letter["event"], letter["run"], letter["replayable"]) == (event, run, False)
    assert response.status_code == 409
    assert f"use `zelda dlq replay {letter['number']}`" in response.json()["detail"]


async def test_many_pages_ask_the_bus_once_in_a_while() -> None:
    bus, now = MemoryBus(), [0.0]
    service = DeadLetterService(bus, lambda: now[0])
    assert await service.list() == []
    await bus.publish(segment_ready(0))
    await reject_all(bus, JUDGE_SEGMENTS, "no manifest")
    assert await service.list() == []
    now[0] += FRESH_S + 1
    assert len(await service.list()) == 1


async def test_a_failed_export_is_found_behind_many_dead_letters() -> None:
    bus = MemoryBus()
    service = DeadLetterService(bus)
    for number in range(MAX_LISTED + 1):
        await bus.publish(segment_ready(number))
    while await bus.pending(JUDGE_SEGMENTS):
        await reject_all(bus, JUDGE_SEGMENTS, "no manifest")
    event = segment_ready(0).data
    assert isinstance(event, SegmentReady)
    place = keys.SegmentPlace(event.run, event.epoch, event.episode, event.segment)
    await bus.publish(wrap(export_requested(place, event.digest), source=SOURCE, fence=1))
    while await bus.pending(EXPORTER_SEGMENTS):
        await reject_all(bus, EXPORTER_SEGMENTS, "the replay ends in another state")
    with pytest.raises(NotFound, match="the replay ends in another state") as refused:
        await service.require_no_failed_export(place)
    letter = (await bus.dead.list(10_000))[-1]
    assert f"zelda dlq replay {letter.number}" in str(refused.value)
    await bus.dead.drop(letter.number)
    await service.require_no_failed_export(place)


async def test_dead_letters_cannot_be_read_while_the_bus_is_away(tmp_path: Path) -> None:
    harness = Harness()
    harness.bus.connected = False
    async with client(harness, tmp_path, VIEWER) as http:
        assert (await http.get("/dead-letters")).status_code == 503
