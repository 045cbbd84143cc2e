"""Measures how well one judge process uses its models, and what votes cost: `python bench/judge.py [--json FILE]`.

Starts the rules judge as a separate process with 200 ms latency and 32 slots, and feeds one judge process (memory bus,
directory store) with real segments of Bramble's garden. Keys: `ceiling_share`, `prompt_token_ratio`,
`beside_dead_route_ratio` (1.10 at most), and, below the target, `limited_by`: CPU of a process, other load, the
concurrency limit, or too few calls in flight.
"""

import argparse
import asyncio
import dataclasses
import json
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `python bench/x.py` starts without it

import httpx

from bench.harness.bottleneck import LoadProbe
from bench.harness.segments import RUN, play, renamed
from cli.stack.ports import PortAllocator
from services.judge.adapters.segment_archive import read_archive
from services.judge.config import JudgesFile, load_judges
from services.judge.domain.facts.summary import compute_facts
from services.judge.domain.judge_input import JudgeInput
from services.judge.runtime import JudgeRuntime
from services.judge.service.prompt_builder import build_prompt
from services.judge.settings import JudgeGroup
from services.judge.telemetry import ROUTES
from shared.bus.consumer import Consumer
from shared.bus.consumer_loop import ConsumerLoop
from shared.bus.memory import MemoryBus
from shared.bus.topology import JUDGE_SEGMENTS
from shared.contracts.envelope import wrap
from shared.contracts.events import SegmentReady
from shared.contracts.ids import Digest, EpisodeId, SegmentId
from shared.llm.port import CompletionRequest
from shared.llm.route import RouteClient
from shared.llm.route_spec import RouteSpec
from shared.llm.tokens import token_bound
from shared.store import keys
from shared.store.object_store import local_store
from shared.store.port import Store

LATENCY_S, SERVER_SLOTS = 0.2, 32
WARM_UP_S = 4.0  # not measured: the limit of each route grows from eight calls, connections open
MEASURED_S = 15.0
CEILING_TARGET = 0.95  # of the ceiling; the result names the limit of a run that stays below


def main() -> int:
    """Measure, print the figures, and write them to the JSON file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = asyncio.run(_measure())
    for name, value in figures.items():
        print(f"{name:28} {value}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2))
    return 0


async def _measure() -> dict[str, Any]:
    archives = [raw for seed in range(8) for raw in play("garden", 3_000, None if seed % 2 else 0.3, seed)]
    port = PortAllocator().allocate()
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "services.judge.rules_server", "--port", str(port)]
    options = ["--latency-ms", str(LATENCY_S * 1000), "--max-concurrent", str(SERVER_SLOTS)]
    server = await asyncio.create_subprocess_exec(*command, *options)
    try:
        await _wait_for_server(address)
        return {
            **await _throughput(archives, address, server.pid),
            **await _prompt_tokens(archives, address),
            **await _beside_dead_route(archives[0], address),
        }
    finally:
        server.terminate()
        await server.wait()


async def _throughput(archives: list[bytes], address: str, server: int) -> dict[str, Any]:
    """Measure the share of the server's slots in use. The ceiling is SERVER_SLOTS / LATENCY_S calls a second."""
    segments = int((WARM_UP_S + MEASURED_S) * SERVER_SLOTS / LATENCY_S / 3 * 1.1)
    with tempfile.TemporaryDirectory() as folder:
        store, bus, stop = local_store(Path(folder)), MemoryBus(), asyncio.Event()
        await _publish(store, bus, archives, segments)
        runtime = JudgeRuntime(
            store, _judges(address), JudgeGroup(cache_size=0, slots=64, audit_share=0, canary_segments=0)
        )
        subscription = dataclasses.replace(JUDGE_SEGMENTS, slots=64)
        loop = ConsumerLoop(bus, Consumer(subscription, runtime.handlers.segment_ready))
        working = asyncio.create_task(loop.run(stop))
        await asyncio.sleep(WARM_UP_S)
        begun, before = time.monotonic(), await _server_metrics(address)
        probe = LoadProbe(server, lambda: _calls(runtime))
        probe.start()
        await asyncio.sleep(MEASURED_S)
        load = probe.stop()
        seconds, after = time.monotonic() - begun, await _server_metrics(address)
        stop.set()
        await working
        await runtime.close()
    busy = after["rules_busy_seconds_total"] - before["rules_busy_seconds_total"]
    calls = after["rules_requests_total"] - before["rules_requests_total"]
    share = calls / seconds / (SERVER_SLOTS / LATENCY_S)
    return {
        "ceiling_share": round(share, 4),
        "limited_by": load.explain(SERVER_SLOTS) if share < CEILING_TARGET else None,
        "places_busy_share": round(busy / seconds / SERVER_SLOTS, 4),
        "calls_per_s": round(calls / seconds, 1),
        "segments_per_s": round(calls / seconds / 3, 1),
        **load.figures(),
    }


def _calls(runtime: JudgeRuntime) -> tuple[int, int, int]:
    """Calls in flight, calls allowed, and calls that queue, over all routes."""
    routes = runtime.routes.values()
    return (
        sum(route.in_flight for route in routes),
        sum(route.concurrency.limit for route in routes),
        sum(route.queued for route in routes),
    )


async def _prompt_tokens(archives: list[bytes], address: str) -> dict[str, Any]:
    """Measure the prompt tokens of one request with n=3 over those of three requests, as the server counts them."""
    route = RouteClient("bench", RouteSpec(url=f"{address}/v1"), ROUTES)
    together = apart = shared = whole = pictures = 0
    for number, raw in enumerate(archives[:20]):
        judge_input = _judge_input(number, raw)
        for spec in _judges(address).judges:
            body = (await build_prompt(spec, judge_input, None)).body
            together += (await route.complete(CompletionRequest(body, 3, number, RUN))).prompt_tokens or 0
            apart += sum(
                [
                    (await route.complete(CompletionRequest(body, 1, number + i, RUN))).prompt_tokens or 0
                    for i in range(3)
                ]
            )
            system, user = (message["content"] for message in body["messages"])
            parts: list[dict[str, Any]] = [{"type": "text", "text": user}] if isinstance(user, str) else user
            shared += token_bound(system)
            whole += token_bound(system) + sum(token_bound(part.get("text", "")) for part in parts)
            pictures += sum(token_bound(part["image_url"]["url"]) for part in parts if "image_url" in part)
    await route.close()
    return {
        "prompt_token_ratio": round(together / apart, 4),
        "shared_prefix_bytes": shared,
        "prompt_text_bytes": whole,
        "prompt_picture_bytes": pictures,
        "shared_prefix_share": round(shared / whole, 4),
    }


def _judge_input(number: int, raw: bytes) -> JudgeInput:
    recording = read_archive(raw)
    manifest = recording.manifest
    facts = compute_facts(manifest.game, manifest.frame_skip, recording.states, {}, recording.before)
    return JudgeInput(RUN, SegmentId(f"s{number}"), facts, "", tuple(recording.frames))


async def _beside_dead_route(raw: bytes, address: str) -> dict[str, Any]:
    """Measure the median time of a call beside a route whose server is silent, over the time without that route."""

    async def read_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            await reader.read()  # until the client closes the connection

    body = (await build_prompt(_judges(address).judges[0], _judge_input(0, raw), None)).body
    silent = await asyncio.start_server(read_on, "127.0.0.1", 0)
    async with silent:
        url = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}/v1"
        healthy = RouteClient("bench", RouteSpec(url=f"{address}/v1"), ROUTES)
        dead = RouteClient("dead", RouteSpec(url=url, total_timeout_s=0.5), ROUTES)

        async def ask_dead_route() -> None:
            while True:
                calls = (dead.complete(CompletionRequest(body, 1, seed, RUN)) for seed in range(20))
                await asyncio.gather(*calls, return_exceptions=True)
                await asyncio.sleep(0.01)

        alone = await _median_call_s(healthy, body)
        asking = asyncio.create_task(ask_dead_route())
        beside = await _median_call_s(healthy, body)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await healthy.close()
        await dead.close()
    return {"beside_dead_route_ratio": round(beside / alone, 4)}


async def _median_call_s(route: RouteClient, body: dict[str, Any]) -> float:
    taken = []
    for seed in range(40):
        begun = time.monotonic()
        await route.complete(CompletionRequest(body, 1, seed, RUN))
        taken.append(time.monotonic() - begun)
    return statistics.median(taken)


async def _publish(store: Store, bus: MemoryBus, archives: list[bytes], segments: int) -> None:
    for number in range(segments):
        name, episode = SegmentId(f"s{number}"), EpisodeId("e1")
        key = keys.segment(RUN, 0, episode, name)
        digest = Digest(await store.create(key, renamed(archives[number % len(archives)], name)))
        data = SegmentReady(run=RUN, epoch=0, key=key, digest=digest, episode=episode, segment=name)
        await bus.publish(wrap(data, source="bench"))


def _judges(address: str) -> JudgesFile:
    return load_judges(None, f"{address}/v1")


async def _wait_for_server(address: str) -> None:
    async with httpx.AsyncClient() as client:
        for _ in range(100):
            try:
                await client.get(f"{address}/health")
                return
            except httpx.HTTPError:
                await asyncio.sleep(0.1)
    raise RuntimeError("the rules judge did not start within 10 s")


async def _server_metrics(address: str) -> dict[str, float]:
    async with httpx.AsyncClient() as client:
        lines = (await client.get(f"{address}/metrics")).text.splitlines()
    return {line.split()[0]: float(line.split()[1]) for line in lines if "{" not in line and line[:1] not in ("#", "")}


if __name__ == "__main__":
    raise SystemExit(main())
