"""Measures how many segments per hour the routes of a judges file can judge, on sample segments.

The judges answer as in the service: the same prompts, votes and retries. The first segment fills the server's prefix
cache and does not count.
"""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from services.judge import telemetry
from services.judge.config import JudgesFile
from services.judge.domain.facts.states import StepState
from services.judge.domain.facts.summary import compute_facts
from services.judge.domain.judge_input import JudgeInput
from services.judge.offline.slow_routes import evaluate_patiently
from services.judge.service.judge import Judge
from shared.contracts.ids import RunId, SegmentId
from shared.contracts.scores import JudgeResult
from shared.llm.port import RouteTimeout, RouteUnavailable
from shared.llm.route import RouteClient

CONCURRENT_SEGMENTS = 4  # segments measured together; more, and the measurement of a paid model costs more
STEPS = 100
GUIDANCE = "The player has no sword yet. Finding people and reading what they say is the way forward."


@dataclass(frozen=True, slots=True)
class RouteSpeed:
    """What a route did: `seconds` for `at_once` segments, judged together; `problem` instead of figures."""

    route: str
    at_once: int = 0
    seconds: float = 0.0
    prompt_tokens: int = 0
    problem: str | None = None

    @property
    def segments_per_hour(self) -> float:
        """Segments an hour at this rate; 0 with a problem."""
        return 3_600 * self.at_once / self.seconds if self.seconds else 0.0


async def measure_speed(file: JudgesFile) -> list[RouteSpeed]:
    """Measure each route that has a judge, one after the other: they may share a machine."""
    used = [name for name in file.routes if any(judge.route == name for judge in file.judges)]
    return [await _measure_route(file, name) for name in used]


async def _measure_route(file: JudgesFile, name: str) -> RouteSpeed:
    route = RouteClient(name, file.routes[name], telemetry.ROUTES)
    judges = [Judge(spec, route) for spec in file.judges if spec.route == name]
    samples = _samples()
    try:
        await _judge(judges, next(samples))
        at_once = min(CONCURRENT_SEGMENTS, file.routes[name].max_concurrent)
        begun = time.monotonic()
        results = await asyncio.gather(*(_judge(judges, next(samples)) for _ in range(at_once)))
        seconds = time.monotonic() - begun
    except RouteUnavailable as error:
        return RouteSpeed(name, problem=str(error))
    finally:
        await route.close()
    flat = [result for one in results for result in one]
    if abstained := [result for result in flat if result.status == "abstained"]:
        return RouteSpeed(name, problem=f"judge {abstained[0].judge} abstained: {'; '.join(abstained[0].reasons[:2])}")
    tokens = sum(result.usage.prompt_tokens for result in flat) // at_once
    return RouteSpeed(name, at_once, seconds, tokens)


async def _judge(judges: list[Judge], sample: JudgeInput) -> list[JudgeResult]:
    return await asyncio.gather(*(evaluate_patiently(judge, sample, after=RouteTimeout) for judge in judges))


def _samples() -> Iterator[JudgeInput]:
    """Yield different segments: walks through some rooms, with a text and an item."""
    number = 0
    while True:
        number += 1
        states = [StepState.from_row(_row(step, 2 + number % 5), step) for step in range(STEPS)]
        facts = compute_facts("bramble:garden", 12, states, {})
        yield JudgeInput(RunId("speed"), SegmentId(f"sample-{number}"), facts, GUIDANCE, ())


def _row(step: int, rooms: int) -> dict[str, Any]:
    passed = step * rooms // STEPS
    return {
        "step": step,
        "group": 0,
        "room": 0x12 + passed,
        "x": 8 + (step // 10 * 16) % 144,
        "y": 64,
        "area": "overworld",
        "health": 12,
        "max_health": 12,
        "rupees": 5 * passed,
        "keys": None,
        "essences": 0,
        "treasures": ["sword"] if step > STEPS // 2 else [],
        "season": None,
        "in_dungeon": False,
        "menu": 0,
        "dialog": {"text": 1, "line": "TAKE THIS BLADE."} if STEPS // 3 <= step < STEPS // 2 else None,
        "events": [],
        "rooms_visited": 1 + passed,
        "items_taken": 0,
        "doors_opened": 0,
        "deaths": 0,
    }
