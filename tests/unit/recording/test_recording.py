"""Recorded segments are complete, replay exactly and reveal every change."""

import io
import os
import random
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bramble.registration import bramble_game
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.env.vector import ZeldaVectorEnv
from services.trainer.recording.builder import key_steps
from services.trainer.recording.recorder import MIN_STEPS, RunnerRecorder
from shared.contracts.archive import read_manifest
from shared.contracts.base import sha256
from shared.contracts.epoch import SegmentRef
from shared.contracts.segment import ACTIONS, MANIFEST
from shared.errors import ContractError, DigestMismatch
from shared.game.emulator.emulator import Emulator
from shared.game.errors import ReplayMismatch
from shared.game.observation import counters
from shared.game.recording.png import palette_png
from shared.game.recording.replay import replay, verify
from shared.game.recording.segment import Segment, read_segment
from shared.game.recording.state_rows import StateRow, StateRowWriter
from tests.unit.recording.recording_settings import every_segment

SEGMENTS = int(os.environ.get("ZELDA_TEST_SEGMENTS", "60"))  # 1,000 for the full proof, see bench/replay.py
ROOT = Path(__file__).resolve().parents[3]


def record(folder: Path, steps: int, num_envs: int = 2, **more: object) -> tuple[list[SegmentRef], int]:
    """Record every segment of random play into a directory store; return those written and the number dropped."""
    config = EnvConfig.of({"world": "vale", "num_envs": num_envs, "segment_steps": 60, **more})
    recorder = RunnerRecorder(config, every_segment(folder))
    vector = ZeldaVectorEnv(config, recorder=recorder)
    vector.reset()
    rng = np.random.default_rng(4)
    for _ in range(steps):
        vector.step(rng.integers(0, 8, num_envs))
    vector.close()
    return recorder.written(), recorder.dropped


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Archives of two environments, each with an episode of 150 steps and the beginning of another."""
    folder = tmp_path_factory.mktemp("store")
    written, dropped = record(folder, 220, episode_length=150)
    assert dropped == 0
    archives = [(folder / entry.key).read_bytes() for entry in written]
    assert [sha256(raw) for raw in archives] == [entry.digest for entry in written]
    return archives


def test_segment_ids_name_epoch_runner_environment_episode_and_index(recorded: list[bytes]) -> None:
    names = sorted(read_manifest(raw).segment for raw in recorded)

    assert names == [
        "e0003-r00-v00-0000-s000",
        "e0003-r00-v00-0000-s001",
        "e0003-r00-v00-0000-s002",
        "e0003-r00-v00-0001-s000",
        "e0003-r00-v01-0000-s000",
        "e0003-r00-v01-0000-s001",
        "e0003-r00-v01-0000-s002",
        "e0003-r00-v01-0001-s000",
    ]


def test_a_segment_holds_what_judges_and_the_reward_model_need(recorded: list[bytes]) -> None:
    segment = read_segment(recorded[0])
    manifest = segment.manifest

    assert manifest.steps == len(segment.actions) == len(segment.states.splitlines()) == 60
    assert segment.observations.shape == (61, 128)
    assert segment.counters is not None
    assert segment.counters.shape == (61, counters.SIZE)
    assert (np.diff(segment.counters.astype(int), axis=0) >= 0).all()
    assert (segment.manifest.actions, segment.manifest.counters) == ("actions/v2", "counters/v1")
    assert manifest.key_frames == list(key_steps(60)) == sorted(segment.frames)
    assert len(segment.frames) == 8
    assert all(png.startswith(b"\x89PNG") for png in segment.frames.values())
    rows = [StateRow.from_bytes(text.encode()) for text in segment.states.splitlines()]
    assert [row.step for row in rows] == list(range(manifest.first_step + 1, manifest.first_step + 61))
    assert set(manifest.reward_terms) >= {"room", "tile", "time"}
    assert "reward" not in segment.states, "judges see facts, never rewards"


def test_the_tail_of_an_episode_is_a_shorter_segment(recorded: list[bytes]) -> None:
    steps: dict[str, int] = {read_manifest(raw).segment: read_manifest(raw).steps for raw in recorded}

    assert steps["e0003-r00-v00-0000-s002"] == 30
    assert min(steps.values()) >= MIN_STEPS


def test_a_replay_gives_the_recorded_states_and_pictures(recorded: list[bytes]) -> None:
    emulator = Emulator(bramble_game("vale"))
    segment = next(s for s in map(read_segment, recorded) if len(s.prefix))

    moments = list(replay(segment, emulator, lambda step: step in segment.frames))

    assert len(moments) == segment.manifest.steps + 1
    for moment, text, action in zip(moments[1:], segment.states.splitlines(), segment.actions, strict=True):
        assert StateRowWriter().line(moment.state, segment.manifest.first_step + moment.step, int(action)) == text
        if moment.picture is not None:
            assert palette_png(moment.picture) == segment.frames[moment.step]
    emulator.close()


def test_the_picture_before_the_first_action_is_that_of_a_replay(recorded: list[bytes]) -> None:
    emulator = Emulator(bramble_game("vale"))
    for segment in map(read_segment, recorded):
        first = next(replay(segment, emulator, lambda step: step == 0))
        assert first.picture is not None
        assert palette_png(first.picture) == segment.frames[0]
    emulator.close()


def test_the_ram_hash_reveals_other_actions_and_another_rom(recorded: list[bytes]) -> None:
    segment = read_segment(recorded[0])
    emulator = Emulator(bramble_game("vale"))
    other = Segment(
        segment.manifest, segment.states, segment.observations, (segment.actions + 1) % 8, segment.prefix,
        segment.start_state, segment.frames, segment.counters,
    )  # fmt: skip

    with pytest.raises(ReplayMismatch, match=r"RAM at the end is [0-9a-f]{64}, the recording has [0-9a-f]{64}"):
        verify(other, emulator)
    with pytest.raises(ReplayMismatch, match=r"recorded with ROM [0-9a-f]{64}, but this is [0-9a-f]{64}"):
        verify(segment, Emulator(bramble_game("garden")))


@pytest.mark.parametrize("again", [verify, lambda segment, emulator: list(replay(segment, emulator))])
def test_an_unreadable_start_state_is_a_contract_error(
    recorded: list[bytes], again: Callable[[Segment, Emulator], object]
) -> None:
    segment = replace(read_segment(recorded[0]), start_state=b"no state")

    with pytest.raises(ContractError, match=r"segment e0003-.*: start\.state: a saved state of 8 bytes does not load"):
        again(segment, Emulator(bramble_game("vale")))


def test_a_flipped_bit_in_any_member_is_detected(recorded: list[bytes]) -> None:
    with zipfile.ZipFile(io.BytesIO(recorded[0])) as archive:
        names = [name for name in archive.namelist() if name != MANIFEST]

    for name in names:
        with pytest.raises(DigestMismatch, match=f"{name} differs from its digest in the manifest"):
            read_segment(_flipped(recorded[0], name))


def test_a_missing_or_added_member_is_detected(recorded: list[bytes]) -> None:
    with pytest.raises(ContractError, match=r"missing or unlisted members: actions\.npy"):
        read_segment(_rebuilt(recorded[0], lambda name, data: None if name == ACTIONS else data))
    with pytest.raises(ContractError, match="not a segment archive"):
        read_segment(recorded[0][:-200])


def _flipped(raw: bytes, member: str) -> bytes:
    return _rebuilt(raw, lambda name, data: bytes([data[0] ^ 1]) + data[1:] if name == member else data)


def _rebuilt(raw: bytes, change: object) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            data = change(info.filename, old.read(info))  # type: ignore[operator]
            if data is not None:
                new.writestr(info, data)
    return out.getvalue()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_segments_replay_to_equal_hashes_in_another_process(tmp_path: Path) -> None:
    written, dropped = record(tmp_path, SEGMENTS * 60 // 4, num_envs=4, episode_length=700)
    assert dropped == 0
    assert len(written) >= SEGMENTS

    command = [sys.executable, "-W", "ignore", "-m", "bench.replay", "--verify", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=800, check=True)

    assert done.stdout.strip() == f"{len(written)} of {len(written)} segments replay to equal RAM hashes"


def test_a_repeated_run_writes_the_same_actions_under_the_same_ids(tmp_path: Path) -> None:
    first, _ = record(tmp_path / "first", 120)
    again, _ = record(tmp_path / "again", 120)

    assert {entry.segment for entry in first} == {entry.segment for entry in again}
    for entry in first:
        one, two = (read_segment((tmp_path / name / entry.key).read_bytes()) for name in ("first", "again"))
        assert one.manifest.ram_end == two.manifest.ram_end
        assert one.states == two.states


def test_a_closed_recorder_leaves_no_thread(tmp_path: Path) -> None:
    written, _ = record(tmp_path, 130)

    assert written
    assert "segment-writer" not in [thread.name for thread in threading.enumerate()]


def test_a_recorder_can_be_removed_between_two_episodes(tmp_path: Path) -> None:
    config = EnvConfig.of({"world": "garden", "segment_steps": 30})
    recorder = RunnerRecorder(config, every_segment(tmp_path))
    session = GameSession(config, recording=recorder.for_env(0))
    rng = random.Random(3)

    def play(steps: int) -> None:
        session.reset()
        for _ in range(steps):
            session.step(rng.randrange(1, 7))

    play(80)  # and leave the episode within its third segment
    session.recording = None
    play(1_000)
    session.close()
    recorder.close()

    written = recorder.written()
    # Sorted: several archives are on their way to the store at the same time.
    assert sorted(entry.segment for entry in written) == ["e0003-r00-v00-0000-s000", "e0003-r00-v00-0000-s001"]
    emulator = Emulator(config.open_game())
    for entry in written:
        verify(read_segment((tmp_path / entry.key).read_bytes()), emulator)
    emulator.close()


GAMES_THAT_ARE_NEVER_CLOSED = """
import sys
from pathlib import Path
from tests.unit.recording.test_recording import record, ZeldaVectorEnv
ZeldaVectorEnv.close = lambda self: None
record(Path(sys.argv[1]), 500, num_envs=1)
"""


def test_a_process_ends_without_closing_its_recorder(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", GAMES_THAT_ARE_NEVER_CLOSED, str(tmp_path)]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)

    assert done.stderr == ""
    assert list(tmp_path.rglob("*.zip"))
