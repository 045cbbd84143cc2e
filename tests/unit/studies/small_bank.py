"""A bank of a few hundred steps in the garden, and answers about it."""

from functools import cache

from shared.contracts.base import sha256
from shared.contracts.ids import Digest, JudgeName
from shared.contracts.scores import DIMENSIONS, DimensionScore, JudgeResult
from studies.judges.answers import Answer
from studies.judges.bank import SEGMENT_STEPS, Bank, BankEpisode, BankSegment, Half
from studies.judges.play import Course, play_actions, record

WALK = bytes([1, 1, 4, 4, 2, 2, 3, 3, 5, 0]) * (SEGMENT_STEPS // 10)


@cache
def small_bank() -> Bank:
    """Two episodes of the garden, one for each half, with one segment each."""
    halves: tuple[Half, ...] = ("dev", "test")
    episodes = tuple(BankEpisode("garden", 7 + place, "sticky", half, WALK) for place, half in enumerate(halves))
    return Bank(episodes, tuple(_segment(place, episode) for place, episode in enumerate(episodes)))


def _segment(place: int, episode: BankEpisode) -> BankSegment:
    _, segments = record(episode.world, episode.seed, play_actions(episode.actions))
    course = Course.of(segments[0])
    return BankSegment(f"b{place:04d}", place, course.index, course.steps, course.gain, None, course.digest)


def imagined_bank(gains: list[int], per_episode: int = 2, half: Half = "dev") -> Bank:
    """A bank that nobody can replay: segments with these gains."""
    count = -(-len(gains) // per_episode)
    episodes = tuple(BankEpisode("garden", seed, "sticky", half, b"") for seed in range(count))
    segments = [
        BankSegment(f"b{place:04d}", place // per_episode, place % per_episode, 300, gain, None, sha256(b""))
        for place, gain in enumerate(gains)
    ]
    return Bank(episodes, tuple(segments))


def answer(segment: str, votes: list[int]) -> Answer:
    """An answer whose judge voted this in every dimension."""
    value = sorted(votes)[len(votes) // 2] / 5
    score = DimensionScore(votes=votes, value=value, unanimous=len(set(votes)) == 1, spread=max(votes) - min(votes))
    result = JudgeResult(
        judge=JudgeName("one"),
        route="near",
        model="invented",
        prompt=Digest(sha256(b"prompt")),
        status="judged",
        dimensions=dict.fromkeys(DIMENSIONS, score),
    )
    weights = dict.fromkeys(DIMENSIONS, 0.2)
    return Answer(
        segment=segment, weighted=value, weights=weights, facts_bytes=900 + votes[0], seconds=2.0, results=[result]
    )
