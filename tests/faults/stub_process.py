"""Runs the stub service as a process between a bus and a store that the test provides."""

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from shared.config.settings import StoreSettings

ROOT = Path(__file__).parents[2]
MODULE = "tests.integration.stub_service"


@asynccontextmanager
async def stub_service(bus: str, store: StoreSettings, log: Path, **settings: str) -> AsyncIterator[Process]:
    """Run the stub for the duration of the body. It must drain on SIGTERM; after a failed body it is killed.

    `bus` is the server's URL, `settings` are further environment variables, `log` receives standard error.
    """
    environment = {
        **os.environ,
        "ZELDA_BUS__URL": bus,
        "ZELDA_STORE__URL": store.url,
        "ZELDA_STORE__ENDPOINT": str(store.endpoint),
        "ZELDA_STORE__ACCESS_KEY_FILE": str(store.access_key_file),
        "ZELDA_STORE__SECRET_KEY_FILE": str(store.secret_key_file),
        "ZELDA_HTTP__PORT": "0",
        **settings,
    }
    with log.open("wb") as output:
        command = (sys.executable, "-m", MODULE)
        process = await asyncio.create_subprocess_exec(*command, env=environment, cwd=ROOT, stderr=output)
    try:
        yield process
        assert process.returncode is None
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 40) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def memory_mb(process: Process) -> float:
    """Resident memory of the process, in megabytes."""
    return int(Path(f"/proc/{process.pid}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024
