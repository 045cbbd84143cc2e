"""Failpoints do nothing unless armed, act as armed, and are refused in production images."""

import pytest

from shared.errors import Transient
from shared.process.failpoints import arm, failpoint


def test_unarmed_failpoint_does_nothing() -> None:
    arm({})
    failpoint("judge.before_ack")


def test_armed_failpoint_raises_the_given_number_of_times() -> None:
    arm({"ZELDA_FAILPOINTS": "judge.after_score=error:2;trainer.after_put=error"})
    for visit in (1, 2):
        with pytest.raises(Transient, match=rf"failpoint judge.after_score \(visit {visit}\)"):
            failpoint("judge.after_score")
    failpoint("judge.after_score")
    with pytest.raises(Transient):
        failpoint("trainer.after_put")
    arm({})


def test_wrong_value_is_reported() -> None:
    with pytest.raises(ValueError, match=r"'judge=boom' is not NAME=exit"):
        arm({"ZELDA_FAILPOINTS": "judge=boom"})


def test_production_image_refuses_failpoints() -> None:
    with pytest.raises(ValueError, match="production image"):
        arm({"ZELDA_FAILPOINTS": "judge.before_ack=exit", "ZELDA_PRODUCTION": "1"})
