"""Episodes can begin where the walk-through was when it reached a milestone; evaluation never sees it."""

import io

import numpy as np
import pytest
from pydantic import ValidationError

import bramble
from bramble.emulator import BrambleEmulator
from bramble.registration import bramble_game
from bramble.solver.walker import StuckError, Walker
from bramble.solver.walkthrough import WALKTHROUGHS, solve
from bramble.worlds.milestones import reached
from services.trainer.env.curriculum_starts import milestone_states, starts_for
from services.trainer.env.vector import ZeldaVectorEnv
from services.trainer.settings import DriverGroup
from shared.contracts.run import RunConfig
from shared.errors import Permanent

pytestmark = pytest.mark.filterwarnings("ignore:Using SDL2 binaries")


def test_a_start_after_two_milestones_pays_nothing_for_them() -> None:
    states = milestone_states("garden", 0)
    assert [state.name for state in states] == ["sword", "hedge", "gate"]
    games = ZeldaVectorEnv({"world": "garden", "num_envs": 1})
    games.set_starts([states[1]])
    games.reset()
    assert games.sessions[0].milestones == 2
    rewards = games.step(np.zeros(1, int))[1]
    assert abs(rewards[0]) < 0.01
    games.close()


def test_shares_of_starts_are_those_asked_for() -> None:
    run = RunConfig(world="garden")
    game = bramble_game("garden")
    names = [state.name for state in starts_for(game, run, (0.25, 0.0, 0.25))]
    assert (names.count("sword"), names.count("gate"), names.count("start")) == (25, 25, 50)


def test_shares_of_more_than_half_are_refused_with_the_settings() -> None:
    with pytest.raises(ValidationError, match="may begin after a milestone"):
        DriverGroup(curriculum=[0.4, 0.4])


def test_a_share_of_a_milestone_that_does_not_exist_is_refused() -> None:
    game, run = bramble_game("garden"), RunConfig(world="garden")
    with pytest.raises(Permanent, match=r"share for milestone 4, .*garden can begin after its first 3 milestones"):
        starts_for(game, run, (0.0, 0.0, 0.0, 0.3))
    assert len(starts_for(game, run, (0.3, 0.0, 0.0, 0.0))) == 100, "a share of 0 asks for no start"


def test_a_share_too_small_for_one_start_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"no episode would begin there: raise it to 0\.01, or set it to 0"):
        DriverGroup(curriculum=[0.3, 0.004])


def test_states_are_of_the_runs_difficulty() -> None:
    run, shares = RunConfig(world="vale", difficulty="harsh"), (*[0.0] * 14, 0.5)
    start = starts_for(bramble_game("vale", "harsh"), run, shares)[0]
    milestone = next(one for one in bramble.world("vale").milestones if one.name == start.name)
    found: list[bytes] = []

    def look(game: BrambleEmulator) -> None:
        if not found and reached(milestone, game.read):
            buffer = io.BytesIO()
            game.pyboy.save_state(buffer)
            found.append(buffer.getvalue())

    solve("vale", 0, look, "harsh")
    assert start.state == found[0]
    assert start.state != milestone_states("vale", 0)[14].state, "at normal difficulty enemies move otherwise"


def test_a_walk_through_that_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(walker: Walker) -> None:
        raise StuckError("the hero does not move")

    monkeypatch.setitem(WALKTHROUGHS, "garden", lost)
    with pytest.raises(Permanent, match=r"does not end with seed 91 .* \(the hero does not move\): leave"):
        starts_for(bramble_game("garden"), RunConfig(world="garden", seed=91), (0.1,))


def test_a_game_without_a_walk_through_has_no_curriculum() -> None:
    game = bramble_game("garden")
    with pytest.raises(Permanent, match="leave ZELDA_DRIVER__CURRICULUM empty"):
        starts_for(game, RunConfig(game="oracle-of-seasons"), (0.1,))
