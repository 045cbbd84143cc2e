"""Makes the bank: `python -m studies.judges.make_bank [--out FILE]`. The same code makes the same bank.

The halves share no episode and no wild world. Within a half, segments are drawn so that worlds, policies and gains are
balanced: most play gains nothing, and pairs of equal gain say little about a judge. Rounds of play follow until the
bank has enough segments of each gain.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Final

import numpy as np

from bramble.solver.walkthrough import solve
from shared.process.cores import usable_cores
from studies.judges.bank import FILE, HALVES, Bank, BankEpisode, BankSegment, Half
from studies.judges.play import POLICIES, Course, play_policy, record

NEXT_SEGMENTS: Final = 3
SEED: Final = 29
WORLDS: Final[dict[Half, tuple[str, ...]]] = {
    "dev": ("garden", "vale", "wild:61", "wild:62", "wild:63", "wild:64", "wild:65"),
    "test": ("garden", "vale", "wild:66", "wild:67", "wild:68", "wild:69", "wild:70"),
}
EPISODES: Final = {"random": 1, "sticky": 1, "early": 3, "late": 3, "solver": 1, "mixture": 6}
MORE: Final = {"solver": 2, "mixture": 3}  # episodes of each further round, while segments with gains are missing
ROUNDS: Final = 6
GARDEN: Final = 2  # times as many episodes: those of the garden are short
SEGMENTS: Final = {0: 200, 1: 150, 2: 150}  # of each half by gain; 2 means two or more
MAX_GAIN: Final = 2


@dataclass(frozen=True, slots=True)
class CandidateEpisode:
    """An episode with all of its segments; their `episode` is not yet numbered."""

    episode: BankEpisode
    segments: tuple[BankSegment, ...]


def main(argv: list[str]) -> int:
    """Play, choose, and write the file."""
    parser = argparse.ArgumentParser(prog="python -m studies.judges.make_bank", description=__doc__)
    parser.add_argument("--out", type=Path, default=FILE)
    parser.add_argument("--jobs", type=int, default=usable_cores(), help="processes that play")
    parser.add_argument("--first", type=Path, help="bank of the first round, which is then not played again")
    options = parser.parse_args(argv)
    bank = Bank((), ()) if options.first is None else Bank.load(options.first)
    for number in range(0 if options.first is None else 1, ROUNDS):
        halves = [half for half in HALVES if any(missing(bank, half).values())]
        played = list(play_round(number, halves, options.jobs, _report)) if halves else []
        bank = extended(bank, played, np.random.default_rng([SEED, 1 + number])) if played else bank
    bank.save(options.out)
    sys.stdout.write(f"{describe(bank)}\n{options.out}: {options.out.stat().st_size:,} bytes\n")
    return 0


def _report(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def play_round(number: int, halves: list[Half], jobs: int, report: Callable[[str], None]) -> Iterator[CandidateEpisode]:
    """Play the episodes of one round in all worlds of some halves, in this order."""
    places = [(half, world) for half in halves for world in WORLDS[half]]
    with ProcessPoolExecutor(jobs) as pool:
        found = pool.map(_play_world, repeat(number), *zip(*places, strict=True))
        for (half, world), episodes in zip(places, found, strict=True):
            report(f"round {number}, {half}: {world}: {len(episodes)} episodes")
            yield from episodes


def _play_world(number: int, half: Half, world: str) -> list[CandidateEpisode]:
    seed = 100_000 * number + 1_000 * (HALVES.index(half) * 10 + WORLDS[half].index(world))
    steps, found = solve(world).steps, []
    for policy, count in (MORE if number else EPISODES).items():
        for _ in range(count * (GARDEN if world == "garden" else 1)):
            seed += 1
            found.append(play_one(world, policy, half, seed, steps))
    return found


def play_one(world: str, policy: str, half: Half, seed: int, walk_steps: int) -> CandidateEpisode:
    """Play one episode."""
    rng = np.random.default_rng([SEED, seed])
    actions, completed = record(world, seed, play_policy(world, POLICIES[policy], walk_steps, rng))
    courses = [Course.of(segment) for segment in completed]
    ended = bool(completed) and completed[-1].terminated
    segments = tuple(_segment(courses, place, ended) for place in range(len(courses)))
    return CandidateEpisode(BankEpisode(world, seed, policy, half, actions), segments)


def _segment(courses: list[Course], place: int, ended: bool) -> BankSegment:
    course, following = courses[place], courses[place + 1 : place + 1 + NEXT_SEGMENTS]
    known = ended or len(following) == NEXT_SEGMENTS
    return BankSegment(
        name="",
        episode=0,
        index=course.index,
        steps=course.steps,
        gain=course.gain,
        next_gain=sum(one.gain for one in following) if known else None,
        digest=course.digest,
    )


def missing(bank: Bank, half: Half) -> dict[int, int]:
    """Return how many segments of each gain this half lacks."""
    counts = Counter(min(segment.gain, MAX_GAIN) for segment in bank.half(half))
    return {gain: count - counts[gain] for gain, count in SEGMENTS.items()}


def extended(bank: Bank, played: list[CandidateEpisode], rng: np.random.Generator) -> Bank:
    """Return the bank with what it lacks of the played segments, shuffled; episodes without a segment are left out."""
    chosen = [place for half in HALVES for place in _choose_half(missing(bank, half), played, half, rng)]
    numbers = {number: len(bank.episodes) + place for place, number in enumerate(sorted({one for one, _ in chosen}))}
    found = list(bank.segments)
    ends: dict[int, int] = defaultdict(int)
    for number, place in chosen:
        segments = played[number].segments
        ends[number] = max(ends[number], sum(one.steps for one in segments[: place + 1]))
        found.append(replace(segments[place], episode=numbers[number]))
    episodes = [
        replace(played[number].episode, actions=played[number].episode.actions[: ends[number]]) for number in numbers
    ]
    order = rng.permutation(len(found))
    shuffled = tuple(replace(found[place], name=f"b{count:04d}") for count, place in enumerate(order))
    return Bank((*bank.episodes, *episodes), shuffled)


def _choose_half(
    wanted: dict[int, int], played: list[CandidateEpisode], half: Half, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """Return (episode, place) of new segments of a half: each gain's count, in turns over worlds and policies."""
    found: list[tuple[int, int]] = []
    for gain, count in wanted.items():
        strata: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for number, one in enumerate(played):
            for place, segment in enumerate(one.segments):
                if one.episode.half == half and min(segment.gain, MAX_GAIN) == gain:
                    strata[one.episode.world, one.episode.policy].append((number, place))
        found += _in_turns([[group[i] for i in rng.permutation(len(group))] for group in strata.values()])[:count]
    return found


def _in_turns(groups: list[list[tuple[int, int]]]) -> list[tuple[int, int]]:
    """The first of each group, then the second of each, and so on."""
    longest = max(map(len, groups), default=0)
    return [group[turn] for turn in range(longest) for group in groups if turn < len(group)]


def describe(bank: Bank) -> str:
    """A table of the bank: segments by half, policy and gain."""
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for segment in bank.segments:
        episode = bank.episodes[segment.episode]
        counts[episode.half, episode.policy][min(segment.gain, MAX_GAIN)] += 1
    rows = [f"{half:5} {policy:8} {row[0]:5} {row[1]:5} {row[2]:5}" for (half, policy), row in sorted(counts.items())]
    head = f"{len(bank.segments)} segments of {len(bank.episodes)} episodes\n{'half':5} {'policy':8}  gain 0, 1, 2+"
    return "\n".join([head, *rows])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
