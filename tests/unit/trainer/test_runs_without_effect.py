"""A request of which a part could do nothing is refused; a run that was stored before plays on as it did."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from shared.contracts.epoch import EpochStart
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig

NO_NEED = {"dialogs": False, "puzzles": False}
ONE = {"mode": "sil", "source": "archive", "trajectories": 1}


def stored(**changes: Any) -> RunConfig:
    """The configuration of an order that was stored with these values."""
    order = EpochStart(run=RunId("old"), epoch=0, fence=0, config=RunConfig(), created=datetime.now(UTC))
    document = json.loads(order.to_bytes())
    for block, values in changes.items():
        document["config"][block].update(values)
    return EpochStart.from_bytes(json.dumps(document).encode()).config


@pytest.mark.parametrize("mode", ["model", "rules"])
def test_a_planner_without_a_need_is_refused(mode: str) -> None:
    with pytest.raises(ValueError, match=r"planner\.mode needs planner\.dialogs or planner\.puzzles"):
        RunConfig.model_validate({"planner": {"mode": mode, **NO_NEED}})
    RunConfig.model_validate({"planner": {"mode": "none", **NO_NEED}})
    for need in NO_NEED:
        RunConfig.model_validate({"planner": {"mode": mode, **NO_NEED, need: True}})


def test_one_trajectory_is_not_weighed_by_its_lead() -> None:
    with pytest.raises(ValueError, match=r"set imitation\.trajectories to 2 or more, or imitation\.mode to awr"):
        RunConfig.model_validate({"imitation": ONE})
    with pytest.raises(ValueError, match=r"set imitation\.trajectories to 2 or more"):
        RunConfig.model_validate({"imitation": ONE, "restarts": {"share": 0.5}})
    for other in ({"mode": "awr"}, {"source": "both"}, {"trajectories": 2}, {"mode": "none"}):
        RunConfig.model_validate({"imitation": ONE | other})
    backward = {"share": 0.5, "mode": "backward"}
    RunConfig.model_validate({"imitation": ONE, "restarts": backward})  # its trajectory is compared with nothing


@pytest.mark.parametrize("share", [0.001, 0.005, 0.0099])
def test_restarts_of_less_than_one_start_in_a_hundred_are_refused(share: float) -> None:
    with pytest.raises(ValueError, match=r"no episode would begin there: set it to 0, or to 0\.01 or more"):
        RunConfig.model_validate({"restarts": {"share": share}})
    read = stored(restarts={"share": share})
    assert (read.restarts.share, read.keeps_archive) == (0.01, True)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9])
def test_other_shares_of_restarts_are_kept(share: float) -> None:
    assert RunConfig.model_validate({"restarts": {"share": share}}).restarts.share == share
    assert stored(restarts={"share": share}).restarts.share == share


def test_a_stored_planner_without_a_need_is_read_as_none() -> None:
    for mode in ("model", "rules"):
        read = stored(planner={"mode": mode, "wait_s": 3.0, **NO_NEED})
        assert (read.planner.mode, read.planner.wait_s) == ("none", 3.0)
    assert stored(planner={"mode": "rules", "dialogs": False}).planner.mode == "rules"


@pytest.mark.parametrize(("share", "explore"), [(0.0, 0), (0.5, 900)])
def test_a_stored_imitation_of_nothing_is_read_as_none(share: float, explore: int) -> None:
    read = stored(imitation=ONE, restarts={"share": share, "explore": 900})
    assert read.imitation.mode == "none"
    assert (read.restarts.share, read.restarts.explore, read.keeps_archive) == (share, explore, bool(share))


def test_a_stored_run_that_has_an_effect_stays_as_it_is() -> None:
    backward = {"share": 0.5, "mode": "backward", "explore": 900}
    read = stored(imitation=ONE, restarts=backward)
    assert (read.imitation.mode, read.restarts.explore) == ("sil", 900)
