"""The judge as a process, on a real bus, with a real HTTP server behind its routes."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from shared.bus.open import open_bus
from shared.bus.provision import provision
from shared.contracts.ids import SegmentId
from shared.contracts.judging.epoch_report import EpochJudging
from shared.contracts.scores import SegmentScores
from shared.store import keys
from shared.store.object_store import local_store
from shared.store.port import NotFound, Store
from tests.rules import RulesServer
from tests.servers import NatsServer, free_ports
from tests.unit.judge.segment_factory import RUN, archive, recorded, walk

SEGMENTS = 20


@pytest.fixture
def rules() -> Iterator[RulesServer]:
    with RulesServer() as server:
        yield server


def environment(bus: NatsServer, store: Path, rules: RulesServer, **more: str) -> dict[str, str]:
    settings = {
        "BUS__URL": bus.url,
        "STORE__URL": f"file://{store}",
        "HTTP__PORT": str(free_ports(1)[0]),
        "JUDGE__DEFAULT_URL": rules.url,
        "JUDGE__PATIENCE_S": "60",
        **more,
    }
    return {**os.environ, **{f"ZELDA_{name}": value for name, value in settings.items()}}


def judge(env: dict[str, str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "services.judge"], env=env)


async def announce(bus: NatsServer, store: Store, segments: int) -> None:
    await provision(bus.settings)
    connection = await open_bus(bus.settings, "trainer")
    for number in range(segments):
        name = f"s{number}"
        raw = archive(name, {**walk(1 + number % 5), 3: {"rupees": number}}, index=number, milestones_end=number % 5)
        await connection.publish(await recorded(store, raw, name))
    await connection.close()


async def scored(store: Store, segments: int, seconds: float) -> list[SegmentScores]:
    """Wait for the scores of all segments."""
    deadline = time.monotonic() + seconds
    while len(await store.list(keys.scores_prefix(RUN, 0))) < segments:
        assert time.monotonic() < deadline, f"{len(await store.list(keys.scores_prefix(RUN, 0)))} of {segments} scores"
        await asyncio.sleep(0.1)
    names = [SegmentId(f"s{number}") for number in range(segments)]
    return [SegmentScores.from_bytes(await store.get(keys.score(RUN, 0, name))) for name in names]


async def test_segments_become_scores_and_sigterm_writes_the_report(
    nats_server: NatsServer, rules: RulesServer, tmp_path: Path
) -> None:
    store = local_store(tmp_path)
    env = environment(nats_server, tmp_path, rules)
    await announce(nats_server, store, SEGMENTS)
    process = judge(env)
    try:
        scores = await scored(store, SEGMENTS, 30)
        assert {one.status for one in scores} == {"judged"}
        ready = await asyncio.to_thread(lambda: urlopen(f"http://127.0.0.1:{env['ZELDA_HTTP__PORT']}/readyz").status)
        assert ready == 200
    finally:
        process.terminate()
    assert process.wait(30) == 0
    report = EpochJudging.from_bytes(await store.get(keys.judge_report(RUN, 0)))
    assert report.segments == {"judged": SEGMENTS}
    assert report.usage.calls == rules.count("rules_choices_total") / 3


async def test_kill_9_in_the_middle_loses_and_doubles_nothing(
    nats_server: NatsServer, rules: RulesServer, tmp_path: Path
) -> None:
    store = local_store(tmp_path)
    env = environment(nats_server, tmp_path, rules, JUDGE__SLOTS="4")
    rules.behave(latency_ms=150)
    await announce(nats_server, store, SEGMENTS)
    for state in ("judge.before_score=exit:3", "judge.after_score=exit:3"):
        process = judge({**env, "ZELDA_FAILPOINTS": state})
        assert await asyncio.to_thread(process.wait, 30) == -signal.SIGKILL
    process = judge(env)
    try:
        scores = await scored(store, SEGMENTS, 80)
    finally:
        process.terminate()
        process.wait(30)
    assert {one.status for one in scores} == {"judged"}
    with pytest.raises(NotFound):
        await store.get(keys.score(RUN, 0, SegmentId("s999")))


def test_invalid_judges_file_ends_startup_with_one_sentence(tmp_path: Path) -> None:
    wrong = tmp_path / "judges.yaml"
    wrong.write_text("routes: {}\njudges: [{name: state, route: nowhere, model: m, dimensions: [progress]}]\n")
    env = {**os.environ, "ZELDA_STORE__URL": "memory://", "ZELDA_BUS__URL": "memory://", "ZELDA_HTTP__PORT": "0"}
    ended = subprocess.run(
        [sys.executable, "-m", "services.judge"],
        env={**env, "ZELDA_JUDGES_FILE": str(wrong)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == 2
    assert f"{wrong}: " in ended.stderr
    assert "unknown route 'nowhere'" in ended.stderr
