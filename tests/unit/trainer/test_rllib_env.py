"""The games of an env runner: where they begin, and that they record no more than the epoch's plan has left."""

import asyncio
import hashlib
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from bramble.registration import bramble_game
from services.trainer.domain.epoch_metrics import EpisodeSummary
from services.trainer.driver.session_factory import check_playable
from services.trainer.other_ways.leg_passes import PassWatch
from services.trainer.recording.recorder import RunnerRecorder
from services.trainer.restarts.collector import CellCollector
from services.trainer.restarts.leg_limits import NO_PROGRESS, LegProgress
from services.trainer.rl import rllib_env
from services.trainer.rl.epoch_plan import EpochPlan
from services.trainer.rl.rllib_env import EpisodeRewarder, RLlibVectorEnv
from services.trainer.rl.session_config import SESSION_CONFIG, TrainingSessionConfig, UnplayableRun
from services.trainer.settings import DriverGroup
from shared.config.settings import StoreSettings
from shared.contracts.archive import read_manifest
from shared.contracts.epoch import SegmentRef
from shared.contracts.ids import RunId
from shared.contracts.learning.ppo import PpoConfig
from shared.contracts.learning.restarts import RestartsConfig
from shared.contracts.run import PlannerConfig, RunConfig, SamplingConfig
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
DEATH_TRIGGER = 0xCC34
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
    sessions = kept._open_games().sessions
    assert {id(session.emulator) for session in sessions} == emulators
    kept.close()
    assert [session._emulator for session in sessions] == [None, None], "they end with the games"
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


def test_equal_episodes_of_two_seeds_are_different_games() -> None:
    drawn = []
    for seed in (3, 4):
        games = games_of(seed=seed)
        drawn.append(games._open_games().sessions[0].episode.seed)
        games.close()
    assert drawn[0] != drawn[1]


def test_a_resumed_epoch_goes_on_with_its_episode_numbers() -> None:
    games = games_of(episode_length=5)
    games.begin_epoch(EpochPlan(2, first_episodes={"0/0": 7}))
    games.reset()
    for _ in range(5):
        games.step(np.zeros(1, np.int64))
    found = games.collect(final=False)
    games.close()
    assert [one.episode for one in found.summaries] == ["e0002-r00-v00-0007"]
    assert found.next_episodes == {"0/0": 7}


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


class DropsMeanwhile:
    """A recorder whose writer drops a segment whenever the number is read."""

    reads = 0

    @property
    def dropped(self) -> int:
        self.reads += 1
        return self.reads

    def written(self) -> list[SegmentRef]:
        return []

    def close(self) -> None:
        """Nothing to end."""


def test_no_segment_that_is_dropped_meanwhile_goes_unreported() -> None:
    games, recorder = games_of(), DropsMeanwhile()
    games._recorder = cast(RunnerRecorder, recorder)
    reported = [games.collect(final=False).dropped for _ in range(3)]
    games.close()
    assert sum(reported) == recorder.reads == 3


def test_an_epoch_begins_without_the_episodes_of_another() -> None:
    games = games_of(episode_length=5)
    for _ in range(5):
        games.step(np.zeros(1, np.int64))
    games.begin_epoch(EpochPlan(1))
    games.reset()
    assert games.collect(final=False).summaries == []
    assert len(games.collect(final=True).summaries) == 1, "its own episode is open"
    games.close()


def test_what_led_to_a_death_is_part_of_no_pass() -> None:
    """Also where the episode goes on: the pass of the leg begins again."""
    calls: list[str] = []
    games = games_of(terminal_on_death=False)
    watch = SimpleNamespace(begin=lambda *seen: calls.append("begin"), add=lambda *seen: calls.append("add"))
    games._passes = cast(PassWatch, watch)
    collector = SimpleNamespace(look=lambda env, session: NO_PROGRESS, next_leg=lambda env: 0, goal=None)
    games._collector = cast(CellCollector, collector)
    games._open_games().sessions[0].emulator.poke(DEATH_TRIGGER, 0xFF)
    died = []
    for _ in range(60):
        _, _, terminated, _, _ = games.step(np.zeros(1, np.int64))
        assert not terminated.any()
        died.append("begin" if games.died[0] else "add")
    games._passes = games._collector = None
    games.close()
    assert calls == died
    assert died.count("begin") == 1


def test_a_summary_says_what_share_of_the_milestones_was_reached() -> None:
    games = games_of()
    report = asdict(games._open_games().sessions[0].report()) | {"milestones": 3, "milestones_total": 4}
    facts = games._summary(0, report).facts
    games.close()
    assert (facts["milestones"], facts["milestones_share"]) == (3.0, 0.75)


def test_goals_and_points_of_the_trail_are_paid_as_configured() -> None:
    games = games_of(restarts=RestartsConfig(share=0.5, mode="backward", goal_reward=3, trail_reward=0.5))
    games.close()
    assert games._paid(LegProgress(goals=2, points=5)) == {"goal": 6.0, "trail": 2.5}


def test_shaping_discounts_as_the_policy_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise shaping would change which policy is best."""
    made: list[tuple[object, ...]] = []
    monkeypatch.setattr(rllib_env, "ShapingWrapper", lambda *arguments: made.append(arguments))
    games = RLlibVectorEnv(
        {SESSION_CONFIG: TrainingSessionConfig(RunId("play"), CONFIG, PpoConfig(discount=0.9)), "num_envs": 2}
    )
    games.begin_epoch(EpochPlan(0, reward_model=b"model"))
    games._new_shaping()
    assert made == [(2, CONFIG.shaping, 0.9, b"model")]


def test_a_game_that_waits_for_a_model_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    games = games_of(planner=PlannerConfig(mode="rules"))
    shown = []
    for waits in (False, True, False):
        monkeypatch.setattr(games._open_games().sessions[0], "holds", lambda waits=waits: waits)
        games.step(np.zeros(1, np.int64))
        assert games.held is not None
        shown.append(games.held.tolist())
    games.close()
    assert shown == [[False], [True], [False]]
