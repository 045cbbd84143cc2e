"""Runs a service: settings, logs, probes, connections, consumption, orderly end.

Exit codes: 0 drained; 1 a fatal error; 2 wrong configuration; 3 bus or store not reached in 60 s; 4 the bus's topology
is not the declared one; 6 the bus closed the connection permanently. A service never creates streams or buckets.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from shared.config.configure import EXIT_CONFIG, configure
from shared.config.settings import ServiceSettings
from shared.runtime.service import Build

if TYPE_CHECKING:
    import socket

SECOND_SIGNAL_S: Final = 1.0  # a terminal and a supervisor may both send the first one

S = TypeVar("S", bound=ServiceSettings)


def run_service(name: str, settings_type: type[S], build: Build[S], argv: Sequence[str] | None = None) -> int:
    """Run the service until SIGTERM or SIGINT and return its exit code. Nothing heavy is imported before settings."""
    settings = configure(name, settings_type, sys.argv[1:] if argv is None else argv)
    from shared.process import failpoints
    from shared.runtime import health
    from shared.telemetry.logging import setup_logging
    from shared.telemetry.tracing import start_tracing, stop_tracing

    setup_logging(name, settings.log)
    try:
        failpoints.arm()
        start_tracing(name, settings.tracing)
        listener = health.listen(settings.http.host, settings.http.port)
    except (ValueError, OSError) as error:
        where = "" if isinstance(error, ValueError) else f"ZELDA_HTTP__PORT {settings.http.port}: "
        sys.stderr.write(f"{name}: {where}{error}\n")
        return EXIT_CONFIG
    try:
        return asyncio.run(_run(name, settings, build, listener))
    finally:
        stop_tracing()


async def _run(name: str, settings: S, build: Build[S], listener: "socket.socket") -> int:
    from shared.runtime.runner import ServiceRunner  # loads bus, store and HTTP server

    stop = asyncio.Event()
    _listen_for_signals(stop)
    return await ServiceRunner(name, settings, stop).run(build, listener)


def _listen_for_signals(stop: asyncio.Event) -> None:
    loop, first = asyncio.get_running_loop(), [0.0]

    def on_signal() -> None:
        if stop.is_set() and time.monotonic() - first[0] > SECOND_SIGNAL_S:
            os._exit(1)  # a second signal
        first[0] = first[0] or time.monotonic()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
