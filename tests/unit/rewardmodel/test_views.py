"""What a reward model sees: an episode's event counters by default, the policy's observation for earlier runs."""

import numpy as np
import pytest

from services.rewardmodel.settings import INPUTS, PASSING, RewardModelGroup
from shared.contracts.card import REWARD_MODEL_VIEWS
from shared.contracts.ids import EpisodeId, SegmentId
from shared.errors import ContractError
from shared.game.observation import counters, layout
from shared.game.recording.segment import read_segment
from shared.rewardnet import WIDTHS, dump, random_weights, view_of
from tests.unit.rewardmodel.harness import STEPS, archive


def test_every_place_that_lists_the_views_lists_the_same() -> None:
    assert set(WIDTHS) == set(INPUTS) == REWARD_MODEL_VIEWS == {counters.VERSION, layout.VERSION}
    assert {view: len(names) for view, names in INPUTS.items()} == WIDTHS


def test_the_default_view_hides_nothing_and_obs_hides_what_passes() -> None:
    assert RewardModelGroup().hidden == ()
    assert RewardModelGroup(view="obs/v1").hidden == PASSING
    assert RewardModelGroup(masked=("tiles",)).hidden == ("tiles",)
    with pytest.raises(ValueError, match="counters/v1 has no input rooms_seen"):
        RewardModelGroup(masked=("rooms_seen",))


def test_a_model_file_names_its_view() -> None:
    assert view_of(dump(random_weights(3, 0, "counters/v1"))) == "counters/v1"
    with pytest.raises(ContractError, match="not a safetensors file"):
        view_of(b"weights")


def test_an_archive_without_counters_is_left_out_with_a_sentence() -> None:
    states = np.zeros((STEPS + 1, 128), np.float32)
    raw = archive(0, EpisodeId("e0000-r00-v00-0000"), SegmentId("e0000-r00-v00-0000-s000"), states, 0)
    assert read_segment(raw).states_in("obs/v1").shape == (STEPS + 1, 128)
    with pytest.raises(ContractError, match="was recorded without counters/v1"):
        read_segment(raw).states_in("counters/v1")


def test_counters_become_inputs_between_0_and_1_and_unknown_ones_minus_1() -> None:
    counts = np.zeros((2, counters.SIZE), np.uint16)
    counts[1] = [counter.most for counter in counters.COUNTERS]
    counts[:, counters.INDEX["keys_found"]] = counters.UNKNOWN_COUNT
    inputs = counters.features(counts)
    known = np.arange(counters.SIZE) != counters.INDEX["keys_found"]
    assert inputs.dtype == np.float32
    assert (inputs[0, known] == 0).all()
    assert inputs[1, known] == pytest.approx(np.ones(known.sum()))
    assert (inputs[:, ~known] == -1).all()
