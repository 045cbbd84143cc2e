"""The rules judge as a real process on a free port, whose behaviour a test changes while it runs."""

import json
import sys
import urllib.request
from typing import Any

from tests.servers import _ok, _Server, free_ports


class RulesServer(_Server):
    """`python -m services.judge.rules_server`. Options are those of its command line."""

    def __init__(self, *options: str) -> None:
        self.port = free_ports(1)[0]
        self._options = options

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def command(self) -> list[str]:
        module = ["-m", "services.judge.rules_server"]
        return [sys.executable, *module, "--port", str(self.port), "--control", *self._options]

    def answers(self) -> bool:
        return _ok(f"http://127.0.0.1:{self.port}/health")

    def behave(self, **change: Any) -> None:
        """Change its behaviour, e.g. `behave(error_rate=0.5)`."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/behaviour", json.dumps(change).encode(), method="PUT"
        )
        with urllib.request.urlopen(request, timeout=5) as answer:
            assert answer.status == 200

    def count(self, metric: str) -> float:
        """The sum of a metric over its labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith((f"{metric} ", f"{metric}{{")))
