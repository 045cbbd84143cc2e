"""The bank of recorded play: what it holds, and that replay makes its segments again."""

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from services.judge.config import load_phases
from services.judge.service.loader import SegmentLoader
from shared.store.memory import MemoryStore
from studies.judges.bank import FILE, HALVES, Bank, BankError, BankSegment
from studies.judges.make_bank import SEGMENTS, CandidateEpisode, _segment, describe, extended, missing, play_one
from studies.judges.play import Course
from studies.judges.replay import BankReplay
from studies.judges.variants import varied
from tests.unit.studies.small_bank import small_bank


def replayer(bank: Bank) -> BankReplay:
    store = MemoryStore()
    return BankReplay(bank, SegmentLoader(store, load_phases(None), frames=False), store)


def test_the_bank_has_a_thousand_segments_in_less_than_a_megabyte() -> None:
    bank = Bank.load()
    assert len(bank.segments) == 1_000
    assert FILE.stat().st_size < 1_000_000


def test_the_halves_share_no_episode_and_no_wild_world() -> None:
    bank = Bank.load()
    episodes = [{segment.episode for segment in bank.half(half)} for half in HALVES]
    assert not episodes[0] & episodes[1]
    wild = [{bank.episodes[number].world for number in group} - {"garden", "vale"} for group in episodes]
    assert len(wild[0]) == len(wild[1]) == 5
    assert not wild[0] & wild[1]


def test_each_half_is_balanced_by_gain_and_has_all_policies() -> None:
    bank = Bank.load()
    for half in HALVES:
        assert Counter(min(2, segment.gain) for segment in bank.half(half)) == SEGMENTS
        policies = {bank.episodes[segment.episode].policy for segment in bank.half(half)}
        assert policies == {"random", "sticky", "early", "late", "solver", "mixture"}


def test_the_shortest_episode_of_the_bank_replays_exactly() -> None:
    bank = Bank.load()
    lengths = [len(episode.actions) for episode in bank.episodes]
    shortest = lengths.index(min(lengths))
    segment = next(one for one in bank.segments if one.episode == shortest)
    loaded = asyncio.run(replayer(bank).load(segment))
    assert loaded.manifest.milestones_end - loaded.manifest.milestones_start == segment.gain
    assert loaded.judge_input.segment == segment.name


def test_another_course_is_refused() -> None:
    bank = small_bank()
    changed = replace(bank.segments[0], digest="0" * 64)
    with pytest.raises(BankError, match="another course than when the bank was made"):
        asyncio.run(replayer(Bank(bank.episodes, (changed,))).load(changed))


def test_a_bank_is_read_as_it_was_written(tmp_path: Path) -> None:
    bank = small_bank()
    for name in ("a.npz", "b.npz"):
        bank.save(tmp_path / name)
    assert Bank.load(tmp_path / "a.npz") == bank
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize("content", [b"PK no bank", b"junk"])
def test_a_damaged_bank_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "bank.npz").write_bytes(content)
    with pytest.raises(BankError, match=r"is no readable bank \(damaged, or of another kind\): make it with python"):
        Bank.load(tmp_path / "bank.npz")


def test_a_missing_bank_is_named_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(BankError, match=r"none\.npz is no readable bank \(No such file or directory\): make it"):
        Bank.load(tmp_path / "none.npz")


def test_an_episode_is_played_by_solver_and_chance_and_chosen_by_gain() -> None:
    played = [play_one("garden", "mixture", half, 3 + place, 336) for place, half in enumerate(HALVES)]
    assert all(sum(segment.gain for segment in one.segments) == 4 for one in played)
    bank = extended(Bank((), ()), played, np.random.default_rng(0))
    assert {bank.episodes[segment.episode].half for segment in bank.segments} == set(HALVES)
    assert [one.name for one in bank.segments] == [f"b{place:04d}" for place in range(len(bank.segments))]
    assert describe(bank).startswith(f"{len(bank.segments)} segments of 2 episodes")


def test_the_future_of_a_segment_is_known_if_it_was_played() -> None:
    courses = [Course(place, 300, gain, "") for place, gain in enumerate((0, 1, 2, 0, 1))]
    assert [_segment(courses, place, False).next_gain for place in range(5)] == [3, 3, None, None, None]
    assert [_segment(courses, place, True).next_gain for place in range(5)] == [3, 3, 1, 1, 0]


def test_a_further_round_adds_what_is_missing_alone() -> None:
    first = small_bank()
    gained = replace(first.segments[0], gain=1, steps=100)
    more = [CandidateEpisode(replace(first.episodes[0], seed=9), (gained, replace(gained, gain=0)))]
    bank = extended(first, more, np.random.default_rng(0))
    assert len(bank.segments) == 4
    assert missing(bank, "dev")[1] == missing(first, "dev")[1] - 1
    assert len(bank.episodes[2].actions) == 200
    assert {one.digest for one in first.segments} <= {one.digest for one in bank.segments}


@pytest.fixture
def segment() -> BankSegment:
    return small_bank().segments[0]


def test_variants_change_the_totals_and_never_the_timeline(segment: BankSegment) -> None:
    facts = asyncio.run(replayer(small_bank()).load(segment)).judge_input.facts
    shuffled, bare = varied(facts, "shuffled", "b0000"), varied(facts, "no-totals", "b0000")
    planted = varied(facts, "planted", "b0000")
    assert list(shuffled.totals) != list(facts.totals)
    assert shuffled.totals == facts.totals
    assert bare.totals == {}
    assert planted.totals != facts.totals
    assert planted.totals["steps"] == facts.totals["steps"]
    assert {one.events for one in (shuffled, bare, planted)} == {facts.events}
    assert varied(facts, "planted", "b0000") == planted
