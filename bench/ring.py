"""Segments per second through bus and judge workers, and memory with a backlog: `python bench/ring.py`.

A real nats-server holds 10,000 segment events; two worker processes drain them. A worker is a judge without models:
parse, commit a score object in a directory, publish scores.ready, acknowledge. The rate counts from 5 % to 95 %.
Then each real service but the trainer gets the same backlog, to measure its memory: see `bench/harness/ring_memory.py`.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `python bench/x.py` starts without it

from bench.harness.measure import ROOT, arguments, report
from bench.harness.ring_memory import TRAINING, of_services, peak_mb
from bench.harness.ring_run import RUN, finish, record
from cli.console import print_status
from cli.stack.layout import StackLayout
from cli.stack.ports import PortAllocator
from cli.stack.process import ProcessSpec, SupervisedProcess
from cli.stack.servers import base_environment, nats_spec
from shared.bus.jetstream.bus import NatsBus, connect
from shared.bus.provision import provision
from shared.bus.topology import JUDGE_SEGMENTS, REWARDMODEL_SCORES
from shared.config.settings import BusSettings
from shared.contracts.envelope import wrap
from shared.contracts.epoch import SegmentRef
from shared.contracts.events import SegmentReady
from shared.store import keys
from shared.store.object_store import local_store
from shared.store.port import Store

BACKLOG = 10_000
WORKERS = 2
CONCURRENT_PUBLISHES = 200
TIMEOUT_S = 120.0


async def fill(bus: NatsBus, segments: Sequence[SegmentRef], replay_nonce: int = 0) -> float:
    """Publish the backlog. Returns the seconds."""
    started = time.monotonic()
    for first in range(0, len(segments), CONCURRENT_PUBLISHES):
        some = segments[first : first + CONCURRENT_PUBLISHES]
        await asyncio.gather(
            *(bus.publish(wrap(_ready(one), source="bench"), replay_nonce=replay_nonce) for one in some)
        )
    return time.monotonic() - started


def _ready(segment: SegmentRef) -> SegmentReady:
    return SegmentReady(run=RUN, epoch=0, **segment.model_dump(include={"key", "digest", "episode", "segment"}))


async def drain(bus: NatsBus, backlog: int) -> float:
    """Segments per second while the backlog falls from 95 to 5 percent."""
    marks: dict[str, tuple[float, int]] = {}
    deadline = time.monotonic() + TIMEOUT_S
    while (left := await bus.pending(JUDGE_SEGMENTS)) > 0:
        if time.monotonic() > deadline:
            raise SystemExit(f"the workers left {left} of {backlog} segments after {TIMEOUT_S:.0f} s")
        if left <= backlog * 0.95:
            marks.setdefault("first", (time.monotonic(), left))
        if left >= backlog * 0.05:
            marks["last"] = (time.monotonic(), left)
        await asyncio.sleep(0.02)
    (begin, high), (end, low) = marks["first"], marks["last"]
    return (high - low) / (end - begin)


def workers(folder: Path, url: str, credentials: Path) -> list[SupervisedProcess]:
    """The worker processes, not yet started."""
    settings = {
        "ZELDA_BUS__URL": url,
        "ZELDA_BUS__CREDENTIALS_FILE": str(credentials),
        "ZELDA_STORE__URL": f"file://{folder}/objects",
        "ZELDA_HTTP__PORT": "0",
        "ZELDA_LOG__LEVEL": "warning",
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "bench.harness.ring_worker"]
    specs = [ProcessSpec(f"worker-{n}", command, {**base_environment(), **settings}, _at_once) for n in range(WORKERS)]
    return [SupervisedProcess(spec, folder / f"{spec.name}.log", print_status) for spec in specs]


async def _at_once() -> bool:
    """Do not wait for readiness: the rate counts while both work."""
    return True


async def measure(folder: Path, backlog: int) -> tuple[float, float, dict[str, float]]:
    """Publishing and judging rates (segments a second), and peak memory (MB) of the workers and of real services."""
    layout, ports = StackLayout(folder), PortAllocator()
    port = ports.allocate()
    server = SupervisedProcess(nats_spec(layout, port), folder / "bus.log", print_status)
    await server.start()
    judging = workers(folder, f"nats://127.0.0.1:{port}", _credentials(layout))
    try:
        settings = BusSettings(url=f"nats://127.0.0.1:{port}", credentials_file=_credentials(layout))
        await provision(settings)
        bus = await connect(settings, "bench")
        store = local_store(folder / "objects")
        segments = await record(store, backlog)
        filling_s = await fill(bus, segments)
        for worker in judging:
            await worker.start()
        rate = await drain(bus, backlog)
        memory = {"worker": max(peak_mb(worker) for worker in judging)}
        await _check(bus, store, backlog)
        for worker in judging:
            await worker.stop()
        # Again for the real judge: the scores exist, so this costs no judging, only the loop.
        await fill(bus, segments, replay_nonce=1)
        await bus.publish(await finish(store, segments))
        memory |= await of_services(layout, ports, port, bus, store)
        await bus.close()
    finally:
        for process in (*judging, server):
            await process.stop()
    return backlog / filling_s, rate, memory


def _credentials(layout: StackLayout) -> Path:
    return layout.secret_text("bus-credentials", f"zelda:{layout.secret('bus-password').read_text('utf-8')}")


async def _check(bus: NatsBus, store: Store, backlog: int) -> None:
    """Fail if the ring lost or duplicated a segment."""
    scored = len(await store.list(keys.scores_prefix(RUN, 0)))
    announced = await bus.pending(REWARDMODEL_SCORES)
    if not scored == announced == backlog:
        raise SystemExit(f"{backlog} segments gave {scored} score objects and {announced} events")


def main() -> None:
    """Measure and report."""
    options = arguments(__doc__ or "")
    backlog = BACKLOG // 10 if options.quick else BACKLOG
    with tempfile.TemporaryDirectory(prefix="zelda-ring-") as folder:
        published, judged, memory = asyncio.run(measure(Path(folder), backlog))
    rows = [
        ("backlog", f"{backlog} segments, none lost or duplicated"),
        ("published", f"{published:.0f} segments/s"),
        (f"judged by {WORKERS} workers", f"{judged:.0f} segments/s"),
        *((f"peak memory of {name}", f"{peak:.0f} MB") for name, peak in memory.items()),
    ]
    services = [peak for name, peak in memory.items() if name != TRAINING]
    figures = {"segments_per_s": judged, "publish_per_s": published, "rss_max_mb": max(services)}
    figures |= {f"rss_{name}_mb": peak for name, peak in memory.items()}
    report("Ring: bus, consumer loop and commit, without judging", rows, figures, options.json)


if __name__ == "__main__":
    main()
