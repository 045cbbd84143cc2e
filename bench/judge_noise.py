"""Measures the effect of vote noise on judging: `python bench/judge_noise.py [--json FILE] [--plot FILE]`.

The rules judge scores 200 segments of Bramble (played by the solver, at random, and by mixtures) at rising noise.
Prints per noise: rank correlation of the weighted score with milestones gained, agreement, votes per segment.
"""

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `python bench/x.py` starts without it

import httpx

from bench.harness.segments import RUN, play, renamed
from services.judge.adapters.segment_archive import read_archive
from services.judge.config import load_judges
from services.judge.domain.agreement import spearman
from services.judge.domain.ledger_rows import SegmentRow, segment_row
from services.judge.rules_server.app import create_app
from services.judge.rules_server.settings import Behaviour, RulesServerSettings
from services.judge.runtime import JudgeRuntime
from services.judge.settings import JudgeGroup
from shared.contracts.envelope import wrap
from shared.contracts.events import SegmentReady
from shared.contracts.ids import Digest, EpisodeId, SegmentId
from shared.contracts.judging.epoch_report import EpochJudging
from shared.contracts.scores import SegmentScores
from shared.store import keys
from shared.store.memory import MemoryStore

SEGMENTS = 200
NOISES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5)
# World, share of random steps (None: all), number of episodes. Three of four segments are purposeful.
Episodes = tuple[str, float | None, int]
EPISODES: tuple[Episodes, ...] = (
    ("vale", 0.0, 4),
    ("vale", 0.3, 8),
    ("vale", 1.0, 8),
    ("garden", 0.0, 4),
    ("garden", 0.5, 8),
    ("vale", None, 6),
)
QUICK: tuple[Episodes, ...] = (("garden", 0.0, 1), ("vale", None, 1))


@dataclass(frozen=True, slots=True)
class NoiseLevel:
    """One noise level. `correlation` is Spearman's, `agreement` the share of unanimous dimensions."""

    noise: float
    correlation: float
    agreement: float
    votes_per_segment: float
    segments: int


def sample_segments(number: int = SEGMENTS, episodes: Sequence[Episodes] = EPISODES) -> list[bytes]:
    """Return `number` segments, drawn at random from these episodes."""
    found = [
        raw
        for world, wandering, count in episodes
        for seed in range(count)
        for raw in play(world, 4_500, wandering, seed)
    ]
    random.Random(0).shuffle(found)
    return [renamed(raw, f"s{i}") for i, raw in enumerate(found[:number])]


async def measure(archives: Sequence[bytes], noise: float) -> NoiseLevel:
    """Judge all segments at one noise level."""
    app = create_app(RulesServerSettings(behaviour=Behaviour(vote_noise=noise)))
    store = MemoryStore()
    runtime = JudgeRuntime(store, load_judges(None, "http://rules.test/v1"), JudgeGroup(cache_size=0), monitoring=False)
    for route in runtime.routes.values():
        route.clients.transport = httpx.ASGITransport(app)
    rows = [await _row(runtime, store, raw) for raw in archives]
    await runtime.close()
    merged = EpochJudging.from_bytes(await store.get(keys.judge_report(RUN, 0)))
    judged = [row for row in rows if row.weighted is not None]
    correlation = spearman([row.weighted or 0.0 for row in judged], [row.gained for row in judged])
    return NoiseLevel(
        noise,
        round(correlation or 0.0, 4),
        round(merged.agreement or 0.0, 4),
        round(merged.votes / len(archives) / len(merged.judges), 3),
        len(judged),
    )


async def _row(runtime: JudgeRuntime, store: MemoryStore, raw: bytes) -> SegmentRow:
    manifest = read_archive(raw, frames=False).manifest
    segment, episode = SegmentId(manifest.segment), EpisodeId("e1")
    key = keys.segment(RUN, 0, episode, segment)
    digest = Digest(await store.create(key, raw))
    data = SegmentReady(run=RUN, epoch=0, key=key, digest=digest, episode=episode, segment=segment)
    await runtime.handlers.segment_ready(wrap(data, source="bench"))
    scores = SegmentScores.from_bytes(await store.get(keys.score(RUN, 0, segment)))
    return segment_row(scores, manifest)


def plot(points: Sequence[NoiseLevel], path: Path) -> None:
    """Plot correlation, agreement and votes by noise."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4), layout="constrained")
    left = figure.subplots()
    noises = [point.noise for point in points]
    left.plot(
        noises, [p.correlation for p in points], "o-", color="#1b6ca8", label="rank correlation with true progress"
    )
    left.plot(noises, [p.agreement for p in points], "s-", color="#2a9d5c", label="agreement (unanimous share)")
    left.set(
        xlabel="standard deviation of a vote's noise (votes, scale 0-5)", ylabel="share or correlation", ylim=(0, 1.02)
    )
    right = left.twinx()
    right.plot(
        noises, [p.votes_per_segment for p in points], "^--", color="#c8553d", label="votes per judge and segment"
    )
    right.set(ylabel="votes", ylim=(0, 11.2))
    lines = [*left.get_lines(), *right.get_lines()]
    left.legend(lines, [str(line.get_label()) for line in lines], loc="lower left", fontsize=8)
    left.grid(alpha=0.25)
    left.set_title(f"Rules judge on {points[0].segments} Bramble segments", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> int:
    """Measure, print and plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path, help="e.g. docs/images/judge-noise.png")
    parser.add_argument("--quick", action="store_true", help="ten segments and two noise levels, to see that it runs")
    arguments = parser.parse_args()
    archives = sample_segments(10, QUICK) if arguments.quick else sample_segments()
    points = [asyncio.run(measure(archives, noise)) for noise in (NOISES[:2] if arguments.quick else NOISES)]
    print(f"{'noise':>6} {'correlation':>12} {'agreement':>10} {'votes':>6} {'judged':>7}")
    for p in points:
        print(f"{p.noise:6.2f} {p.correlation:12.3f} {p.agreement:10.3f} {p.votes_per_segment:6.2f} {p.segments:7d}")
    if arguments.json:
        rows = [{name: getattr(point, name) for name in NoiseLevel.__slots__} for point in points]
        arguments.json.write_text(json.dumps({"progress_correlation": points[0].correlation, "points": rows}, indent=2))
    if arguments.plot:
        plot(points, arguments.plot)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
