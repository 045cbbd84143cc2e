"""Process specifications of the rules judge and the five services; environment variables configure all of them."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from cli.stack.layout import StackLayout
from cli.stack.probes import is_up
from cli.stack.process import NO_REPAIRS, ProcessSpec, Repairs
from cli.stack.servers import OPERATOR, base_environment, bus_credentials
from shared.config.groups import GROUPS

SERVICES = tuple(GROUPS)
BUS_CREDENTIALS = "ZELDA_BUS__CREDENTIALS_FILE"
JUDGE_URL = "ZELDA_JUDGE__DEFAULT_URL"
PLANNER_URL = "ZELDA_DRIVER__PLANNER_URL"
TRAINER_GRACE_S = 120.0  # its driver writes a checkpoint before it exits


@dataclass(frozen=True, slots=True)
class StackPorts:
    """Ports of a local stack. `store` is None when a directory replaces the S3 server."""

    bus: int
    judge: int
    api: int
    store: int | None
    services: Mapping[str, int]

    def http_port(self, service: str) -> int:
        """Return the HTTP port of a service."""
        return self.api if service == "coordinator" else self.services[service]


class ModelServer(Protocol):
    """A language model that judges in a local system."""

    def server(self, layout: StackLayout, port: int) -> ProcessSpec:
        """Describe the process that serves it at this port."""
        ...

    def judge_settings(self, layout: StackLayout, port: int, chosen: Mapping[str, str]) -> dict[str, str]:
        """Return the judge service's settings, which name the server; those that the user chose stay."""
        ...


def common_settings(layout: StackLayout, ports: StackPorts, store_url: str) -> dict[str, str]:
    """Environment variables of bus and store. The bus's credentials are the operator's; a service gets its own."""
    return {
        "ZELDA_BUS__URL": f"nats://127.0.0.1:{ports.bus}",
        BUS_CREDENTIALS: str(bus_credentials(layout, OPERATOR)),
        **store_settings(layout, store_url, ports.store),
    }


def store_settings(layout: StackLayout, url: str, port: int | None) -> dict[str, str]:
    """Environment variables with which a process reaches the store: a directory, or the S3 server at this port."""
    if port is None:
        return {"ZELDA_STORE__URL": url}
    return {
        "ZELDA_STORE__URL": url,
        "ZELDA_STORE__ENDPOINT": f"http://127.0.0.1:{port}",
        "ZELDA_STORE__ACCESS_KEY_FILE": str(layout.secret("s3-access-key")),
        "ZELDA_STORE__SECRET_KEY_FILE": str(layout.secret("s3-secret-key")),
    }


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
        ports=(port,),
        grace_s=10,
    )


def service_spec(
    name: str, layout: StackLayout, ports: StackPorts, settings: Mapping[str, str], repairs: Repairs = NO_REPAIRS
) -> ProcessSpec:
    """One of the five services; ready when its /readyz returns 200."""
    port = ports.http_port(name)
    own = {"ZELDA_HTTP__PORT": str(port), BUS_CREDENTIALS: str(bus_credentials(layout, name))}
    if name == "coordinator":
        own["ZELDA_COORDINATOR__TOKENS_FILE"] = str(layout.tokens())
        own["ZELDA_COORDINATOR__LOGS_DIR"] = str(layout.logs)
    if name == "judge":
        own[JUDGE_URL] = rules_judge_url(ports)
    if name == "trainer" and PLANNER_URL not in settings:
        own[PLANNER_URL] = rules_judge_url(ports)  # it plans as well
    return ProcessSpec(
        name=name,
        command=[sys.executable, "-m", f"services.{name}"],
        environment={**base_environment(), **settings, **own},
        ready=lambda: is_up(f"http://127.0.0.1:{port}/readyz"),
        ports=(port,),
        repairs=repairs,
        grace_s=TRAINER_GRACE_S if name == "trainer" else 30,
    )
