"""`zelda doctor --speed`: how many segments per hour the judges can judge, compared with what a run requests."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from cli.commands.doctor import run_checks
from cli.llm.speed_check import describe, requests_of
from services.judge.offline.speed import RouteSpeed
from shared.contracts.run import RunConfig
from tests.servers import free_ports

ONE_JUDGE = """\
routes: {{near: {{url: '{url}', attempts: 1, total_timeout_s: {timeout}, longest_timeout_s: 20, max_concurrent: 1}}}}
judges: [{{name: one, route: near, model: rules, dimensions: [progress, dialog], votes: [3]}}]
"""


@contextmanager
def rules_server(*options: str) -> Iterator[str]:
    """Base address of a running rules judge."""
    port = free_ports(1)[0]
    command = [sys.executable, "-m", "services.judge.rules_server", "--port", str(port), *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(f"http://127.0.0.1:{port}/health")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait(10)


def _wait(url: str) -> None:
    for _ in range(300):
        try:
            if httpx.get(url).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.1)
    pytest.fail("the rules judge did not start")


def measured(folder: Path, url: str, timeout: float = 30) -> tuple[bool, str]:
    """Result and text of the check of a judges file with one judge at this address."""
    (folder / "judges.yaml").write_text(ONE_JUDGE.format(url=url, timeout=timeout))
    checks = list(run_checks(None, folder / "none.json", judges=folder / "judges.yaml", speed=True))
    (found,) = [check for check in checks if check.name.startswith("judging speed")]
    return found.ok, found.detail


def test_doctor_measures_the_judges_of_a_file(tmp_path: Path) -> None:
    with rules_server("--latency-ms", "500") as url:
        ok, detail = measured(tmp_path, url)
    assert ok
    seconds = float(detail.partition("(")[2].partition(" s for 1 concurrent")[0])
    assert 0.5 <= seconds < 5


def test_a_server_slower_than_its_limit_is_measured_too(tmp_path: Path) -> None:
    with rules_server("--latency-ms", "600") as url:
        _, detail = measured(tmp_path, url, timeout=0.2)
    assert "segments per hour" in detail


def test_judges_that_abstain_have_no_speed(tmp_path: Path) -> None:
    with rules_server("--garbage-rate", "1") as url:
        ok, detail = measured(tmp_path, url)
    assert not ok
    assert detail.startswith("judge one abstained: ")


def test_an_unreachable_route_has_no_speed(tmp_path: Path) -> None:
    ok, detail = measured(tmp_path, f"http://127.0.0.1:{free_ports(1)[0]}/v1")
    assert not ok
    assert "route near: ConnectError" in detail


def test_a_slow_route_comes_with_a_run_that_it_can_judge() -> None:
    found = describe(RouteSpeed("llm", at_once=1, seconds=45, prompt_tokens=1_130))
    assert not found.ok
    assert "about 80 segments per hour (45.0 s for 1 concurrent, 1130 prompt tokens each)" in found.detail
    assert "requests up to 228, which takes 2.9 h, and a run waits 10 min" in found.detail
    budget = int(found.fix.partition("sampling.budget=")[2].partition(",")[0])
    assert requests_of(budget) * 45 <= RunConfig().judge_deadline_s
    deadline = float(found.fix.partition("judge_deadline_s=")[2])
    assert deadline >= 228 * 45


def test_a_fast_route_keeps_up() -> None:
    found = describe(RouteSpeed("big", at_once=4, seconds=4, prompt_tokens=1_130))
    assert found.ok
    assert "about 3,600 segments per hour" in found.detail


def test_a_hopeless_route_gets_the_smallest_run() -> None:
    assert "sampling.budget=1," in describe(RouteSpeed("slow", at_once=1, seconds=3_000, prompt_tokens=1)).fix
