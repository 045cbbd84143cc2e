"""Episodes can begin where the walk-through was when it reached a milestone; evaluation never sees it."""

import numpy as np
import pytest
from pydantic import ValidationError

from bramble.registration import bramble_game
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


def test_a_game_without_a_walk_through_has_no_curriculum() -> None:
    game = bramble_game("garden")
    with pytest.raises(Permanent, match="leave ZELDA_DRIVER__CURRICULUM empty"):
        starts_for(game, RunConfig(game="oracle-of-seasons"), (0.1,))
