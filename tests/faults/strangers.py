"""A stranger without a key asks every port of a running system: only the listed answers come back.

A stranger is any program of the machine, and any page in a browser on it: loopback is open to both.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

import httpx

from cli.stack.port_owner import listening_ports
from tests.faults.live_system import LiveSystem

FOREIGN: Final = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "PUT"}
METHODS: Final = ("GET", "PUT", "POST", "DELETE", "OPTIONS")
PATHS: Final = (
    *("/", "/status", "/healthz", "/metrics", "/livez", "/readyz", "/health", "/varz", "/connz", "/jsz"),
    *("/dir/assign", "/dir/lookup?volumeId=1", "/dir/status", "/cluster/status", "/vol/status", "/ui/index.html"),
    *("/buckets/", "/zelda-models/", "/zelda-models/probe", "/1,01637037d6", "/runs", "/live", "/v1/models"),
)
STORE_HEALTH: Final = (
    "/healthz",
    "/readyz",
    "/health",
    "/status",
    "/metrics",
    "/",
    "/ui/index.html",
    "/cluster/status",
)
ANSWERS: Final = {200, 201, 202, 204, 206}
ALLOWED: Final = {
    # Every service: whether it works, and figures, also of runs by name (programs of the machine may read them; other
    # origins and what comes through a proxy may not).
    "service": {"GET /livez", "GET /readyz", "GET /metrics"},
    # The page, its texts and scripts hold no data: the data need a token.
    "coordinator": {"GET /", "GET /livez", "GET /readyz", "GET /metrics"},
    # The judge by rules is a pure function of the text that it is sent; it knows nothing and keeps nothing.
    "rules-judge": {"GET /health", "GET /v1/models", "GET /metrics"},
    # SeaweedFS answers these for every method: that it works, its free space and version; no names and no objects.
    "store": {
        *(f"{method} {path}" for method in METHODS for path in STORE_HEALTH),
        *(f"OPTIONS {path}" for path in PATHS),  # it answers every question for permission, and then refuses the call
    },
}
READABLE_BY_ALL: Final = {"/healthz", "/status", "/readyz"}
"""SeaweedFS lets every page read that it works."""


async def unexpected_answers(ring: LiveSystem) -> list[str]:
    """Every answer beyond ALLOWED, as `process port method path`."""
    found = await asyncio.gather(
        *(
            beyond_allowed(process.spec.name, port, own=port in process.spec.ports)
            for process in (*ring.system.servers, *ring.system.services)
            if process.process is not None
            for port in listening_ports(process.process.pid)
        )
    )
    return [line for lines in found for line in lines]


async def beyond_allowed(name: str, port: int, *, own: bool = True) -> list[str]:
    """Every answer of this port beyond ALLOWED; `own`: the process opened the port itself, not one that it started."""
    allowed = ALLOWED.get(name, ALLOWED["service"])
    answers = await _ask(port)
    if not own:  # Ray, which a driver starts, shows figures of its processes for every path; see docs/threat-model.md
        answers = {call: headers for call, headers in answers.items() if not call.startswith(("GET", "OPTIONS"))}
    lines = [f"{name} {port} {call}" for call in answers if call not in allowed]
    return lines + [
        f"{name} {port} {call} may be read by {origin}"
        for call, headers in answers.items()
        if (origin := headers.get("access-control-allow-origin")) and call.split()[1] not in READABLE_BY_ALL
        if not call.startswith("OPTIONS")
    ]


async def _ask(port: int) -> Mapping[str, httpx.Headers]:
    """Headers of every answer that is not a refusal, by method and path."""
    answered: dict[str, httpx.Headers] = {}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=FOREIGN, timeout=5) as client:
        for method in METHODS:
            for path in PATHS:
                try:
                    response = await client.request(method, path, content=b"x" if method in ("PUT", "POST") else None)
                except httpx.HTTPError:  # it speaks another protocol, or hangs up
                    return answered
                if response.status_code in ANSWERS:
                    answered[f"{method} {path}"] = response.headers
    return answered
