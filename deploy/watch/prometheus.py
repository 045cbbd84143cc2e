"""Starts a temporary Prometheus server for given addresses, and queries it."""

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_S = 20.0
SCRAPE_S = 2
Series = tuple[dict[str, str], list[tuple[float, float]]]


@dataclass(frozen=True)
class Prometheus:
    """A running server."""

    address: str

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant query with a finite value."""
        result = self._ask("query", query=expression)
        return [one for one in result if one["value"][1] not in ("NaN", "+Inf", "-Inf")]

    def query_range(self, expression: str, begin: float, end: float) -> list[Series]:
        """(labels, points) of every series between two times, at most 120 points each."""
        step = max(SCRAPE_S, (end - begin) / 120)
        result = self._ask("query_range", query=expression, start=str(begin), end=str(end), step=str(step))
        return [(one["metric"], [(float(at), float(value)) for at, value in one["values"]]) for one in result]

    def _ask(self, what: str, **parameters: str) -> list[dict[str, Any]]:
        body = urllib.parse.urlencode(parameters).encode()
        with urllib.request.urlopen(f"{self.address}/api/v1/{what}", body, timeout=15) as answer:  # noqa: S310
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return found


@contextmanager
def running_prometheus(targets: Mapping[str, str], folder: Path) -> Iterator[Prometheus]:
    """Run a server that scrapes `name -> host:port` every two seconds. Raise FileNotFoundError without prometheus."""
    binary = shutil.which("prometheus")
    if binary is None:
        raise FileNotFoundError("prometheus is not installed: apt-get install prometheus")
    (folder / "prometheus.yml").write_text(json.dumps(_configuration(targets)))
    port = _free_port()
    command = [binary, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    command.append(f"--web.listen-address=127.0.0.1:{port}")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    server = Prometheus(f"http://127.0.0.1:{port}")
    try:
        _until_ready(server)
        yield server
    finally:
        process.terminate()
        process.wait(20)


def _configuration(targets: Mapping[str, str]) -> dict[str, Any]:
    """The configuration as JSON, which is valid YAML. Jobs have the names of the chart's Services."""
    jobs = [
        {"job_name": f"zelda-{name}", "static_configs": [{"targets": [address], "labels": {"namespace": "local"}}]}
        for name, address in targets.items()
    ]
    return {"global": {"scrape_interval": f"{SCRAPE_S}s"}, "scrape_configs": jobs}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _until_ready(server: Prometheus) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            with urllib.request.urlopen(f"{server.address}/-/ready", timeout=2):  # noqa: S310
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
