"""What `zelda doctor --speed` says: how many segments per hour the judges can score, and how many an epoch needs."""

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from services.judge.offline.speed import RouteSpeed


class SpeedFinding(NamedTuple):
    """The judging speed of one route, whether a run's judges can keep up, and what to do if not."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


def check_speed(path: Path | None, default_url: str) -> Iterator[SpeedFinding]:
    """Measure the routes of a judges file, or the built-in judges at this address."""
    from services.judge.config import load_judges
    from services.judge.offline.speed import measure_speed
    from shared.config.yaml_document import ConfigError

    try:
        file = load_judges(path, default_url)
    except ConfigError as error:
        yield SpeedFinding("judging speed", False, str(error), "correct the judges file")
        return
    if not file.routes:
        yield SpeedFinding("judging speed", True, "all judges use rules: thousands of segments per hour")
    for speed in asyncio.run(measure_speed(file)):
        yield describe(speed)


def describe(speed: "RouteSpeed") -> SpeedFinding:
    """Compare a route's speed with what an epoch of a run requests by default."""
    title = f"judging speed of route {speed.route}"
    if speed.problem is not None:
        return SpeedFinding(title, False, speed.problem, "read the server's log, and docs/judges.md on slow servers")
    from shared.contracts.run import RunConfig

    config, rate = RunConfig(), speed.segments_per_hour
    requested = requests_of(config.sampling.budget)
    needed_s = 3_600 * requested / rate
    ok = needed_s <= config.judge_deadline_s
    detail = (
        f"about {_rounded(rate)} segments per hour ({speed.seconds:.1f} s for {speed.at_once} concurrent, "
        f"{speed.prompt_tokens} prompt tokens each); by default an epoch requests up to {requested}, which takes "
        f"{_duration(needed_s)}, and a run waits {_duration(config.judge_deadline_s)}"
    )
    budget = _fitting_budget(rate * config.judge_deadline_s / 3_600)
    longer = min(86_400, math.ceil(needed_s / 600) * 600)
    return SpeedFinding(
        title, ok, detail, f"zelda run start -s sampling.budget={budget}, or -s judge_deadline_s={longer}"
    )


def requests_of(budget: int) -> int:
    """How many segments the judges are asked about in an epoch that records `budget` segments: audits ask twice."""
    from services.judge.settings import JudgeGroup

    group = JudgeGroup()
    return budget + math.ceil(2 * group.audit_share * budget) + group.canary_segments


def _fitting_budget(requests: float) -> int:
    return next((budget for budget in range(int(requests), 1, -1) if requests_of(budget) <= requests), 1)


def _rounded(rate: float) -> str:
    return f"{rate:.0f}" if rate < 1_000 else f"{round(rate, -2):,.0f}"


def _duration(seconds: float) -> str:
    return f"{seconds / 3_600:.1f} h" if seconds >= 3_600 else f"{max(1, round(seconds / 60))} min"
