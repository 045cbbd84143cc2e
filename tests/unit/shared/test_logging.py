"""Logs are JSON lines with the event's fields, bounded and free of secrets; metrics have the project's names."""

import asyncio
import json
import logging
from collections.abc import Sequence

import pytest
import structlog

from shared.bus.consumer import Consumer
from shared.bus.consumer_loop import ConsumerLoop
from shared.bus.memory import MemoryBus
from shared.bus.topology import JUDGE_SEGMENTS
from shared.config.settings import LogSettings
from shared.contracts.envelope import Envelope
from shared.errors import Permanent
from shared.telemetry import metrics
from shared.telemetry.logging import MAX_FIELD_LENGTH, setup_logging
from tests.events import segment_ready


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    """What was logged on standard error; nothing may be on standard output."""
    out, err = capsys.readouterr()
    assert out == ""
    return [json.loads(line) for line in err.splitlines()]


async def test_log_line_of_an_event_names_run_epoch_segment_id_delivery(
    capsys: pytest.CaptureFixture[str],
) -> None:
    setup_logging("judge", LogSettings())
    bus, stop = MemoryBus(), asyncio.Event()

    async def handler(event: Envelope) -> Sequence[Envelope]:
        structlog.get_logger("test").info("looking at it")
        stop.set()
        raise Permanent("no manifest")

    await bus.publish(segment_ready(7))
    await asyncio.wait_for(ConsumerLoop(bus, Consumer(JUDGE_SEGMENTS, handler), fetch_s=0.05).run(stop), 5)
    looking, dead = lines(capsys)
    assert (looking["event"], dead["event"], dead["reason"]) == ("looking at it", "event dead-lettered", "no manifest")
    for line in (looking, dead):
        assert (line["service"], line["run"], line["epoch"], line["delivery"]) == ("judge", "demo", 0, 1)
        assert (line["segment"], line["consumer"]) == ("e0000-s00007", "judge-segments")
        assert segment_ready(7).id.startswith(str(line["event_id"]))


def test_long_field_is_cut_and_a_traceback_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    setup_logging("judge", LogSettings())
    log = structlog.get_logger("test")
    try:
        raise ValueError("x" * 3 * MAX_FIELD_LENGTH)
    except ValueError:
        log.exception("failed", reply="y" * 10 * MAX_FIELD_LENGTH)
    [line] = lines(capsys)
    assert len(str(line["reply"])) == MAX_FIELD_LENGTH + 1
    assert "x" * 3 * MAX_FIELD_LENGTH in str(line["exception"])


def test_library_log_lines_have_the_same_format(capsys: pytest.CaptureFixture[str]) -> None:
    setup_logging("judge", LogSettings(level="warning"))
    logging.getLogger("some.library").warning("slow %s", "disk")
    structlog.get_logger("test").info("below the level")
    [line] = lines(capsys)
    assert (line["event"], line["level"], line["service"]) == ("slow disk", "warning", "judge")


def test_console_format_prints_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    setup_logging("judge", LogSettings(format="console"))
    structlog.get_logger("test").info("ready", port=1)
    assert "ready" in (text := capsys.readouterr().err)
    assert "port=1" in text
    assert not text.startswith("{")


@pytest.mark.parametrize("name", ["events", "zelda_bus_events_total", "Bus_total", "bus_events"])
def test_counter_with_a_foreign_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="metric"):
        metrics.counter(name, "of a test")
