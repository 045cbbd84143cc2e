"""What a segment says of itself: its gains, its rewards and its end; and that a recorder follows its settings."""

from pathlib import Path
from typing import Final

import pytest

from bramble.solver.walkthrough import solve
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession, StepResult
from services.trainer.recording.builder import CompletedSegment
from services.trainer.recording.live_view import WatchedRecorder
from services.trainer.recording.recorder import MIN_STEPS, RunnerRecorder, SegmentRecorder
from shared.contracts.archive import open_archive, read_manifest
from shared.contracts.segment import BEFORE, STATES
from shared.game.recording.state_rows import StateRow
from tests.unit.recording.recording_settings import every_segment

CONFIG: Final = EnvConfig.of({"world": "garden", "segment_steps": 60, "episode_length": 200})
DEATH_TRIGGER: Final = 0xCC34


def recorded(
    folder: Path, config: EnvConfig, dies_after: int | None = None
) -> tuple[list[CompletedSegment], GameSession]:
    """The segments of one episode on the garden's walk-through, and the session at its end."""
    found: list[CompletedSegment] = []
    session = GameSession(config, recording=SegmentRecorder(config, every_segment(folder), 0, found.append))
    session.reset()
    for step, action in enumerate(solve("garden").actions):
        if step == dies_after:
            session.emulator.poke(DEATH_TRIGGER, 0xFF)
        result: StepResult = session.step(action)
        if result.report is not None:
            break
    return found, session


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[CompletedSegment], GameSession]:
    """The segments of 200 steps."""
    found, session = recorded(tmp_path_factory.mktemp("store"), CONFIG)
    session.close()
    return found, session


def test_segments_share_out_what_their_episode_gained(walk: tuple[list[CompletedSegment], GameSession]) -> None:
    """The sampler decides by the gain of a segment, not by what its episode had before."""
    found, session = walk
    assert [len(one.actions) for one in found] == [60, 60, 60, 20]
    chosen = [one.candidate(None) for one in found]
    gained = [one.gained for one in chosen]
    assert sum(gained) == session.milestones > 0
    assert [one.level for one in chosen] == [sum(gained[:number]) for number in range(len(gained))]
    tiles = [one.novelty * len(segment.actions) for one, segment in zip(chosen, found, strict=True) if one.novelty]
    assert sum(tiles) == pytest.approx(session.trace.tiles - found[0].content.start.tiles)
    assert max(tiles) < session.trace.tiles


def test_a_segment_knows_the_state_before_its_first_step(walk: tuple[list[CompletedSegment], GameSession]) -> None:
    """What the first action changes is a difference from it: judges would miss it otherwise."""
    before, last = list[str](), list[str]()
    for one in walk[0]:
        with open_archive(one.archive("share")) as archive:
            before.append(archive.read(BEFORE).decode())
            last.append(archive.read(STATES).decode().splitlines()[-1])
    assert before[1:] == last[:-1]
    first = StateRow.model_validate_json(before[0])
    assert (first.step, first.action) == (0, "wait")


def test_segments_share_out_the_rewards_of_their_episode(walk: tuple[list[CompletedSegment], GameSession]) -> None:
    found, session = walk
    manifests = [read_manifest(one.archive("novelty")) for one in found]
    for name, paid in session.term_sums.items():
        assert sum(one.reward_terms[name] for one in manifests) == pytest.approx(paid), name
    assert sum(abs(paid) for paid in session.term_sums.values()) > 0
    ends = [one.milestones_end for one in manifests]
    assert ends[-1] == session.milestones
    assert [one.milestones_start for one in manifests] == [0, *ends[:-1]]
    assert {one.sampled for one in manifests} == {"novelty"}
    assert not any(one.terminated for one in manifests), "the episode was cut at its longest"


def test_only_the_segment_in_which_the_hero_dies_is_terminated(tmp_path: Path) -> None:
    found, session = recorded(tmp_path, CONFIG, dies_after=90)
    session.close()
    assert len(found) == 2
    assert [read_manifest(one.archive("share")).terminated for one in found] == [False, True]


@pytest.mark.parametrize(("tail", "segments"), [(MIN_STEPS - 1, 1), (MIN_STEPS, 2)])
def test_a_tail_is_kept_if_it_has_enough_steps_to_judge(tmp_path: Path, tail: int, segments: int) -> None:
    config = CONFIG.model_copy(update={"episode_length": CONFIG.segment_steps + tail})
    found, session = recorded(tmp_path, config)
    session.close()
    assert len(found) == segments


def test_a_recorder_samples_by_its_seed_and_shows_one_game(tmp_path: Path) -> None:
    recorder = RunnerRecorder(CONFIG.model_copy(update={"seed": 5}), every_segment(tmp_path, slots=3))
    watched = [isinstance(recorder.for_env(env), WatchedRecorder) for env in range(3)]
    recorder.close()
    assert watched == [True, False, False]
    assert (recorder._sampler.seed, recorder._queue._slots) == (5, 3)
