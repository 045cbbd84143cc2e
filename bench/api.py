"""The REST interface under load, on a real store: `python bench/api.py [--quick]`.

Lists 10,000 runs in all states, lets 200 clients claim one name at the same time, and measures the coordinator's CPU
time while 50 viewers follow a run that changes.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `python bench/x.py` starts without it

import httpx

from bench.harness.measure import Figures, arguments, process_cpu, report
from cli.stack.connections import local_store
from cli.stack.local_stack import LocalStack, StackOptions, run_stack
from shared.contracts.driver import DriverHeartbeat
from shared.contracts.events import RunState
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig, RunRecord
from shared.state.runs import SETTLED_S, RunRecords
from shared.store import keys
from shared.store.port import Store

RUNS: Final = 10_000
STATES: Final[tuple[RunState, ...]] = ("created", "running", "stopping", "stopped", "finished", "failed")
WATCHED: Final = RunId("watched")
VIEWERS, WATCHED_S = 50, 30.0
CLIENTS: Final = 200
PARALLEL: Final = 32  # writes at a time
LISTINGS: Final = 10
IDLE_S: Final = 10.0


def record(number: int) -> RunRecord:
    """One of many runs that other programs train: the coordinator lists them and moves none of them on."""
    made = datetime.now(UTC) - timedelta(days=1, seconds=number)
    return RunRecord(
        run=RunId(f"run-{number:05d}"),
        revision=0,
        state=STATES[number % len(STATES)],
        config=RunConfig(),
        external=True,
        created=made,
        updated=made,
    )


async def fill(store: Store, number: int) -> None:
    """Write so many runs."""
    runs, slots = RunRecords(store), asyncio.Semaphore(PARALLEL)

    async def write(one: int) -> None:
        async with slots:
            await runs.create(record(one))

    await asyncio.gather(*map(write, range(number)))


async def list_runs(client: httpx.AsyncClient, number: int) -> tuple[float, list[float]]:
    """Seconds of the first listing after the records have settled, and of each of the following."""
    await timed_listing(client, number)  # the coordinator begins to read
    await asyncio.sleep(SETTLED_S + 5)  # younger records are read again by each listing
    first = await timed_listing(client, number)
    return first, [await timed_listing(client, number) for _ in range(LISTINGS)]


async def timed_listing(client: httpx.AsyncClient, number: int) -> float:
    """Seconds of one request for the first page; each page is cut from all runs."""
    began = time.perf_counter()
    answer = await client.get("/runs")
    answer.raise_for_status()
    if len(answer.json()["items"]) != min(number, 100):
        raise RuntimeError("the list is incomplete: nothing was measured")
    return time.perf_counter() - began


async def race(client: httpx.AsyncClient, clients: int) -> Counter[int]:
    """Statuses of simultaneous requests for one name, each with a key of its own; the winner's retry included."""
    config = {"world": "garden", "epochs": 1, "epoch_steps": 600, "batch_size": 64, "env_runners": 1}
    body = {"run": "contested", "config": config}

    async def post(number: int) -> int:
        while True:
            answer = await client.post("/runs", json=body, headers={"Idempotency-Key": f"key-{number}"})
            if answer.status_code not in (429, 503):
                return answer.status_code
            await asyncio.sleep(float(answer.headers.get("Retry-After", 1)))

    return Counter(await asyncio.gather(*map(post, range(clients))))


async def follow(client: httpx.AsyncClient) -> None:
    """One viewer of the live page: the stream of a run's events."""
    async with client.stream("GET", f"/runs/{WATCHED}/events") as answer:
        answer.raise_for_status()
        async for _ in answer.aiter_bytes():
            continue


@asynccontextmanager
async def changing_run(store: Store) -> AsyncIterator[None]:
    """A running run whose heartbeat changes every two seconds, as a driver's does."""
    now = datetime.now(UTC)
    await RunRecords(store).create(
        RunRecord(run=WATCHED, revision=0, state="running", config=RunConfig(), created=now, updated=now)
    )

    async def beat() -> None:
        for steps in range(1_000_000):
            heartbeat = DriverHeartbeat(run=WATCHED, epoch=0, steps=steps, time=datetime.now(UTC))
            await store.put(keys.driver_heartbeat(WATCHED), heartbeat.to_bytes())
            await asyncio.sleep(2)

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()


async def watch(client: httpx.AsyncClient, pid: int, viewers: int, seconds: float) -> float:
    """Share of a core that the coordinator takes with so many viewers."""
    following = [asyncio.create_task(follow(client)) for _ in range(viewers)]
    await asyncio.sleep(5)  # all are connected and have their first documents
    if broken := [task.exception() for task in following if task.done()]:
        raise RuntimeError(f"{len(broken)} viewers were refused: nothing was measured") from broken[0]
    began, used = time.perf_counter(), process_cpu(pid)
    await asyncio.sleep(seconds)
    share = (process_cpu(pid) - used) / (time.perf_counter() - began)
    for task in following:
        task.cancel()
    await asyncio.gather(*following, return_exceptions=True)
    return share


async def measure(system: LocalStack, runs: int, seconds: float) -> tuple[list[tuple[str, str]], Figures]:
    """All figures on a running coordinator."""
    process = system.process("coordinator").process
    if process is None:
        raise RuntimeError("the coordinator does not run")
    token = system.layout.secret("operator").read_text(encoding="utf-8")
    limits = httpx.Limits(max_connections=CLIENTS + VIEWERS)
    store = local_store(system.settings)
    async with httpx.AsyncClient(
        base_url=system.url, headers={"Authorization": f"Bearer {token}"}, timeout=60, limits=limits
    ) as client:
        await fill(store, runs)
        first, listings = await list_runs(client, runs)
        statuses = await race(client, CLIENTS)
        idle = await watch(client, process.pid, 0, IDLE_S)
        async with changing_run(store):
            watched = await watch(client, process.pid, VIEWERS, seconds)
    rows = [
        (
            f"GET /runs, {runs:,} runs",
            f"{statistics.median(listings):.3f} s (median of {LISTINGS}), first {first:.2f} s",
        ),
        (f"{CLIENTS} claims of one name", ", ".join(f"{times} x {code}" for code, times in sorted(statuses.items()))),
        ("coordinator without viewers", f"{idle:.1%} of a core"),
        (f"coordinator with {VIEWERS} viewers", f"{watched:.1%} of a core"),
    ]
    figures: Figures = {
        "list_s": statistics.median(listings),
        "first_list_s": first,
        "owners": statuses[201] + statuses[200],
        "conflicts": statuses[409],
        "idle_share": idle,
        "watched_share": watched,
    }
    return rows, figures


async def run(runs: int, seconds: float) -> tuple[list[tuple[str, str]], Figures]:
    """Start a bus, a store and a coordinator, and measure."""
    with tempfile.TemporaryDirectory(prefix="bench-api-") as root:
        options = StackOptions(Path(root), services=("coordinator",))
        async with run_stack(options, _print) as system:
            return await measure(system, runs, seconds)


def _print(line: str) -> None:
    sys.stderr.write(line + "\n")


def main() -> None:
    """Measure and report."""
    options = arguments(__doc__)
    rows, figures = asyncio.run(run(500, 5.0) if options.quick else run(RUNS, WATCHED_S))
    report("REST interface under load", rows, figures, options.json)


if __name__ == "__main__":
    main()
