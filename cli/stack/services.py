"""Process specifications of the rules judge and the five services; environment variables configure all of them."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from cli.stack.layout import StackLayout
from cli.stack.probes import is_up
from cli.stack.process import ProcessSpec
from cli.stack.servers import base_environment
from shared.config.groups import GROUPS

SERVICES = tuple(GROUPS)
JUDGE_URL = "ZELDA_JUDGE__DEFAULT_URL"
TRAINER_GRACE_S = 120.0  # its driver writes a checkpoint before it exits


@dataclass(frozen=True, slots=True)
class StackPorts:
    """Ports of a local stack. `store` is None when a directory replaces the S3 server."""

    bus: int
    judge: int
    api: int
    store: int | None
    services: Mapping[str, int]

    def http_port(self, service_spec: str) -> int:
        """Return the HTTP port of a service."""
        return self.api if service_spec == "coordinator" else self.services[service_spec]


def common_settings(layout: StackLayout, ports: StackPorts, store_url: str) -> dict[str, str]:
    """Environment variables that every service receives."""
    credentials = layout.secret_text("bus-credentials", f"zelda:{layout.secret('bus-password').read_text('utf-8')}")
    settings = {
        "ZELDA_BUS__URL": f"nats://127.0.0.1:{ports.bus}",
        "ZELDA_BUS__CREDENTIALS_FILE": str(credentials),
        "ZELDA_STORE__URL": store_url,
    }
    if ports.store is not None:
        settings["ZELDA_STORE__ENDPOINT"] = f"http://127.0.0.1:{ports.store}"
        settings["ZELDA_STORE__ACCESS_KEY_FILE"] = str(layout.secret("s3-access-key"))
        settings["ZELDA_STORE__SECRET_KEY_FILE"] = str(layout.secret("s3-secret-key"))
    return settings


def rules_judge_url(ports: StackPorts) -> str:
    """Base URL of the rules judge."""
    return f"http://127.0.0.1:{ports.judge}/v1"


def rules_judge_spec(port: int) -> ProcessSpec:
    """The rules judge: an OpenAI-compatible server that votes by fixed rules."""
    return ProcessSpec(
        name="rules-judge",
        command=[sys.executable, "-m", "services.judge.rules_server", "--port", str(port)],
        environment=base_environment(),
        ready=lambda: is_up(f"http://127.0.0.1:{port}/health"),
        grace_s=10,
    )


def service_spec(name: str, layout: StackLayout, ports: StackPorts, settings: Mapping[str, str]) -> ProcessSpec:
    """One of the five services; ready when its /readyz returns 200."""
    port = ports.http_port(name)
    own = {"ZELDA_HTTP__PORT": str(port)}
    if name == "coordinator":
        own["ZELDA_COORDINATOR__TOKENS_FILE"] = str(layout.tokens())
    if name == "judge":
        own[JUDGE_URL] = rules_judge_url(ports)
    return ProcessSpec(
        name=name,
        command=[sys.executable, "-m", f"services.{name}"],
        environment={**base_environment(), **settings, **own},
        ready=lambda: is_up(f"http://127.0.0.1:{port}/readyz"),
        grace_s=TRAINER_GRACE_S if name == "trainer" else 30,
    )
