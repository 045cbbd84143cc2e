"""The games of an env runner: where they begin, and that they record no more than the epoch's plan has left."""

import asyncio
import hashlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from bramble.registration import bramble_game
from services.trainer.domain.epoch_metrics import EpisodeSummary
from services.trainer.driver.session_factory import check_playable
from services.trainer.recording.recorder import RunnerRecorder
from services.trainer.rl.epoch_plan import EpochPlan
from services.trainer.rl.rllib_env import EpisodeRewarder, RLlibVectorEnv
from services.trainer.rl.session_config import SESSION_CONFIG, TrainingSessionConfig, UnplayableRun
from services.trainer.settings import DriverGroup
from shared.config.settings import StoreSettings
from shared.contracts.archive import read_manifest
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig, SamplingConfig
from shared.game.decoding.names import ACTIONS
from shared.game.emulator.emulator import Emulator
from shared.game.emulator.start import true_start
from shared.game.games import oracle
from shared.game.games.oracle import identify_rom
from shared.store.object_store import local_store

CONFIG = RunConfig(
    world="garden",
    epoch_steps=300_000,
    segment_steps=30,
    env_runners=1,
    rnd=False,
    sampling=SamplingConfig(budget=12, milestones=False),
)
STEPS = 600  # twenty segments


def recorded(folder: Path, plan: EpochPlan, runner: int = 1, runners: int = 1, judge_interval: int = 1) -> int:
    """How many of twenty segments are recorded under this plan by one of the runners."""
    store, changes = StoreSettings(url=f"file://{folder}"), {"env_runners": runners, "judge_interval": judge_interval}
    config = CONFIG.model_copy(update=changes)
    games = RLlibVectorEnv(
        {SESSION_CONFIG: TrainingSessionConfig(RunId("play"), config, store=store, runner=runner), "num_envs": 1}
    )
    games.begin_epoch(plan)
    games.reset()
    rng = np.random.default_rng(0)
    for _ in range(STEPS):
        games.step(rng.integers(0, 7, 1))
    found = len(games.collect(final=True).segments)
    games.close()
    return found


def test_a_resumed_epoch_uses_the_whole_rest_of_its_budget(tmp_path: Path) -> None:
    rest = CONFIG.epoch_steps - STEPS
    assert recorded(tmp_path / "begun", EpochPlan(0)) <= 1
    assert 8 <= recorded(tmp_path / "rest", EpochPlan(0, steps=rest)) <= 12
    assert recorded(tmp_path / "used", EpochPlan(0, steps=rest, recorded=12)) == 0


def test_with_more_runners_than_budget_only_the_first_ones_record(tmp_path: Path) -> None:
    plan = EpochPlan(0, steps=CONFIG.epoch_steps - STEPS)
    assert recorded(tmp_path / "12", plan, runner=12, runners=20) == 1
    assert recorded(tmp_path / "13", plan, runner=13, runners=20) == 0


def test_an_epoch_without_judges_records_nothing(tmp_path: Path) -> None:
    rest = CONFIG.epoch_steps - STEPS
    found = [recorded(tmp_path / str(n), EpochPlan(n, steps=rest), judge_interval=3) for n in (3, 4, 5)]
    assert 8 <= found[0] <= 12
    assert found[1:] == [0, 0]


def test_a_segment_names_the_policy_that_acted_and_the_model_that_shaped(tmp_path: Path) -> None:
    config = CONFIG.model_copy(update={"sampling": SamplingConfig(share=1.0), "epoch_steps": 60})
    store = StoreSettings(url=f"file://{tmp_path}")
    games = RLlibVectorEnv({SESSION_CONFIG: TrainingSessionConfig(RunId("play"), config, store=store), "num_envs": 1})
    games.begin_epoch(EpochPlan(0, checkpoint="1" * 64, reward_model_digest="2" * 64))
    games.reset()
    for _ in range(40):
        games.step(np.zeros(1, np.int64))
    first, *_ = games.collect(final=True).segments
    manifest = read_manifest(asyncio.run(local_store(tmp_path).get(first.key, first.digest)))
    assert (manifest.checkpoint, manifest.reward_model) == ("1" * 64, "2" * 64)
    games.close()


@pytest.fixture
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DriverGroup:
    """A ROM that passes for the user's own, and a state in which the hero has walked to the right."""
    game = bramble_game("garden", torn=True)
    monkeypatch.setattr(oracle, "ORACLE_MD5", hashlib.md5(game.rom, usedforsecurity=False).hexdigest())
    emulator = Emulator(game)
    emulator.load(true_start(game).state)
    emulator.step(ACTIONS.index("right"), 40)
    (tmp_path / "own.gbc").write_bytes(game.rom)
    (tmp_path / "own.gbc.state").write_bytes(emulator.save())
    emulator.close()
    return DriverGroup(rom=tmp_path / "own.gbc", start_state=tmp_path / "own.gbc.state")


def training(config: RunConfig, driver: DriverGroup) -> TrainingSessionConfig:
    return TrainingSessionConfig.of(RunId("play"), config, driver, None)


def summary_of_a_step(config: RunConfig, driver: DriverGroup) -> tuple[bytes, EpisodeSummary]:
    """Where an episode begins, and its account after one step."""
    games = RLlibVectorEnv({SESSION_CONFIG: training(config, driver), "num_envs": 1})
    games.reset()
    begun = games._open_games().sessions[0].episode.start.state
    games.step(np.zeros(1, int))
    (summary,) = games.collect(final=True).summaries
    games.close()
    return begun, summary


def test_a_run_of_the_users_own_game_begins_at_the_users_own_state(own_files: DriverGroup) -> None:
    assert own_files.rom is not None
    assert own_files.start_state is not None
    own = RunConfig(game="oracle-of-seasons", env_runners=1)
    wanted = true_start(replace(identify_rom(own_files.rom.read_bytes()), start=own_files.start_state.read_bytes()))
    begun, summary = summary_of_a_step(own, own_files)
    assert begun == wanted.state
    assert summary.from_start  # its milestones are achievements of its own


def test_bramble_begins_at_its_own_start_despite_the_drivers_files(own_files: DriverGroup) -> None:
    begun, _ = summary_of_a_step(CONFIG, own_files)
    assert begun == true_start(bramble_game("garden")).state


def test_own_files_are_checked_before_anything_starts(own_files: DriverGroup, tmp_path: Path) -> None:
    config = CONFIG.model_copy(update={"game": "oracle-of-seasons"})
    check_playable(training(config, own_files))
    with pytest.raises(
        UnplayableRun, match=r"oracle-of-seasons needs your own ROM image: name the \.gbc file with --rom"
    ):
        check_playable(training(config, DriverGroup()))
    (tmp_path / "no.state").write_bytes(b"no state")
    with pytest.raises(UnplayableRun, match="set ZELDA_DRIVER__START_STATE to a state"):
        check_playable(training(config, DriverGroup(rom=own_files.rom, start_state=tmp_path / "no.state")))
    check_playable(training(CONFIG, DriverGroup()))


def test_an_epoch_on_kept_emulators_plays_like_one_on_new_ones() -> None:
    config = {SESSION_CONFIG: TrainingSessionConfig(RunId("play"), CONFIG), "num_envs": 2}
    actions = np.random.default_rng(1).integers(0, 7, (40, 2))

    def play(games: RLlibVectorEnv, epoch: int) -> list[bytes]:
        games.begin_epoch(EpochPlan(epoch))
        games.reset()
        return [games.step(row)[0].tobytes() for row in actions]

    kept, new = RLlibVectorEnv(config), RLlibVectorEnv(config)
    play(kept, 0)
    emulators = {id(session.emulator) for session in kept._open_games().sessions}
    assert play(kept, 1) == play(new, 1)
    assert {id(session.emulator) for session in kept._open_games().sessions} == emulators
    kept.close()
    new.close()


def games_of(**changes: object) -> RLlibVectorEnv:
    """A game of a run that records nothing, in its first epoch."""
    config = TrainingSessionConfig(RunId("play"), CONFIG.model_copy(update=changes))
    games = RLlibVectorEnv({SESSION_CONFIG: config, "num_envs": 1})
    games.begin_epoch(EpochPlan(0))
    games.reset()
    return games


def test_equal_episodes_of_two_epochs_are_different_games() -> None:
    games, memories = games_of(), []
    for epoch in (0, 1, 0):
        games.begin_epoch(EpochPlan(epoch))
        games.reset()
        memories.append(games._open_games().sessions[0].emulator.ram_hash())  # the game's chance is in it
    games.close()
    assert memories[0] == memories[2] != memories[1]


def test_only_an_episode_that_the_epoch_cut_short_is_incomplete() -> None:
    games = games_of(episode_length=30)
    for _ in range(30):
        games.step(np.zeros(1, np.int64))
    ended = games.collect(final=False).summaries
    assert [(one.steps, one.complete) for one in ended] == [(30, True)]
    assert games.collect(final=True).summaries == [], "no episode is open"
    for _ in range(5):  # the first step only resets the game
        games.step(np.zeros(1, np.int64))
    assert [(one.steps, one.complete) for one in games.collect(final=True).summaries] == [(4, False)]
    games.close()


def test_an_episodes_return_contains_what_shaping_paid() -> None:
    games = games_of(episode_length=30)
    games._shaping = cast(EpisodeRewarder, SimpleNamespace(pop=lambda env: 2.5))
    for _ in range(30):
        games.step(np.full(1, ACTIONS.index("right"), np.int64))
    (summary,) = games.collect(final=False).summaries
    assert summary.terms["shaping"] == 2.5
    assert summary.reward == pytest.approx(sum(summary.terms.values()))
    games.close()


def test_segments_that_the_recorder_dropped_are_reported_once() -> None:
    games = games_of()
    recorder = SimpleNamespace(dropped=0, written=list, close=lambda: None)
    games._recorder = cast(RunnerRecorder, recorder)
    found = []
    for dropped in (2, 2, 5):
        recorder.dropped = dropped
        found.append(games.collect(final=False).dropped)
    assert found == [2, 0, 3]
    games.close()
