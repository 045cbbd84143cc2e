"""Episodes begin at the states that a user saved, in the proportion that the run asks for."""

from dataclasses import replace

import numpy as np
import pytest

from bramble.registration import bramble_game
from services.trainer.driver.saved_starts import saved_starts
from services.trainer.rl.epoch_plan import EpochPlan
from services.trainer.rl.rllib_env import RLlibVectorEnv
from services.trainer.rl.session_config import SESSION_CONFIG, TrainingSessionConfig, UnplayableRun
from shared.contracts.base import sha256
from shared.contracts.epoch import EpochStart, SavedState
from shared.contracts.ids import Digest, StateName
from shared.contracts.learning.restarts import RestartsConfig
from shared.contracts.run import RunConfig
from shared.game.decoding.names import ACTIONS
from shared.game.emulator.emulator import EMULATOR, Emulator
from shared.game.emulator.start import begin_episode, true_start
from shared.game.recording.segment import pack_state
from shared.store import keys
from tests.unit.trainer.run_fixtures import NOW, RUN

PATH = StateName("path")
CONFIG = RunConfig(world="garden", episode_length=300, env_runners=0, rnd=False, starts={PATH: 0.3})


@pytest.fixture(scope="module")
def content() -> bytes:
    """The garden after forty steps to the right, compressed."""
    game = bramble_game("garden")
    emulator = Emulator(game)
    begin_episode(emulator, true_start(game).state, seed=1)
    for _ in range(40):
        emulator.step(ACTIONS.index("right"), 4)
    state = emulator.save()
    emulator.close()
    return pack_state(state)


@pytest.fixture
def state(content: bytes) -> SavedState:
    digest = Digest(sha256(content))
    return SavedState(
        name=PATH,
        key=keys.saved_state_content(digest),
        digest=digest,
        game="bramble",
        world="garden",
        difficulty="normal",
        seed=0,
        rom=Digest(bramble_game("garden").digest),
        emulator=EMULATOR,
        place="0:00",
        milestones=0,
        source="a test",
        created=NOW,
    )


def order(state: SavedState, config: RunConfig = CONFIG) -> EpochStart:
    return EpochStart(run=RUN, epoch=0, fence=1, config=config, starts=[state], created=NOW)


def session(config: RunConfig = CONFIG) -> TrainingSessionConfig:
    return TrainingSessionConfig(RUN, config)


def test_the_share_of_episodes_is_the_share_of_slots(state: SavedState, content: bytes) -> None:
    starts = saved_starts(order(state), session(), lambda _: content)
    assert len(starts) == 100
    assert [start.name for start in starts if start is not None] == ["saved-path"] * 30


def test_a_run_without_saved_states_begins_at_the_true_start(content: bytes) -> None:
    plain = CONFIG.model_copy(update={"starts": {}})
    ordered = EpochStart(run=RUN, epoch=0, fence=1, config=plain, created=NOW)
    assert saved_starts(ordered, session(plain), lambda _: content) == ()


def test_episodes_begin_where_the_state_was_saved(state: SavedState, content: bytes) -> None:
    """Also under another seed of the run, which only the ROM's first random number depends on."""
    always = CONFIG.model_copy(update={"starts": {PATH: 1.0}, "seed": 5})
    games = RLlibVectorEnv({SESSION_CONFIG: session(always), "num_envs": 1})
    games.begin_epoch(EpochPlan(0, starts=saved_starts(order(state, always), session(always), lambda _: content)))
    from_state, _ = games.reset()
    summaries = games.collect(final=True).summaries
    games.begin_epoch(EpochPlan(1))
    from_start, _ = games.reset()
    games.close()
    assert not np.array_equal(from_state, from_start)
    assert [one.from_start for one in summaries] == [False]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rom": "f" * 64}, "the saved state path is of another ROM: save it again from this one"),
        ({"emulator": "pyboy 1.0.0"}, "pyboy 1.0.0 saved the state path, and this is pyboy"),
        ({"world": "vale"}, "is of bramble, world vale, normal, and the run plays bramble, world garden, normal"),
    ],
)
def test_a_state_of_another_machine_is_refused(
    state: SavedState, content: bytes, changes: dict[str, str], sentence: str
) -> None:
    with pytest.raises(UnplayableRun, match=sentence):
        saved_starts(order(state.model_copy(update=changes)), session(), lambda _: content)


def test_a_curriculum_of_the_driver_is_refused(state: SavedState, content: bytes) -> None:
    with pytest.raises(UnplayableRun, match="needs an empty ZELDA_DRIVER__CURRICULUM"):
        saved_starts(order(state), replace(session(), curriculum=(0.5,)), lambda _: content)


def test_many_small_shares_keep_their_sum(state: SavedState, content: bytes) -> None:
    names = [StateName(f"cave-{number}") for number in range(20)]
    config = CONFIG.model_copy(update={"starts": dict.fromkeys(names, 0.015)})
    saved = [state.model_copy(update={"name": name}) for name in names]
    ordered = order(state, config).model_copy(update={"starts": saved})
    starts = saved_starts(ordered, session(config), lambda _: content)
    played = [sum(one is not None and one.name == f"saved-{name}" for one in starts) for name in names]
    assert played == [2] * 10 + [1] * 10
    assert (len(starts), starts.count(None)) == (100, 70)


def test_shares_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match=r"starts: the shares sum to 1\.2, and at most 1 is possible"):
        RunConfig(starts={PATH: 0.6, StateName("cave"): 0.6})
    with pytest.raises(ValueError, match=r"starts needs restarts\.share 0"):
        RunConfig(starts={PATH: 0.6}, restarts=RestartsConfig(share=0.2))
