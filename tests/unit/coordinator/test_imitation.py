"""The order of an epoch names the best judged segments of the epochs before it, if the run imitates."""

import pytest

from shared.contracts.epoch import ArchiveDemonstrations, BackwardStage, Imitation, TrajectoryRef
from shared.contracts.ids import Digest
from shared.contracts.run import RunConfig
from shared.store import keys
from tests.unit.coordinator.harness import RUN, Harness, segment, started_run

SEGMENTS = 4


async def judged_epoch(
    harness: Harness, epoch: int, values: list[float | None], other_bytes: int | None = None
) -> None:
    """Finish an epoch whose segments have these scores; None abstained. `other_bytes` was recorded again since."""
    await harness.train(epoch, segments=len(values))
    for number, value in enumerate(values):
        scores = harness.scores(epoch, number, "abstained" if value is None else "judged")
        scores = scores.model_copy(update={"weighted": value})
        if number == other_bytes:
            scores = scores.model_copy(update={"segment_digest": "f" * 64})
        await harness.store.create(keys.score(RUN, epoch, scores.segment), scores.to_bytes())
    await harness.train_reward_model(epoch)
    await harness.passes()


async def imitated(harness: Harness, epoch: int) -> Imitation | None:
    return (await harness.start_order(epoch)).imitation


async def test_the_best_segments_of_the_latest_epochs_are_pinned() -> None:
    harness = await started_run(epochs=5, imitation={"mode": "sil", "top_k": 3, "epochs_back": 2})
    assert await imitated(harness, 0) is None
    await judged_epoch(harness, 0, [0.9, 0.1, None, 0.1])
    await judged_epoch(harness, 1, [0.5, 0.2, 0.2, 0.1])
    both = await imitated(harness, 2)
    assert both is not None
    assert [one.segment for one in both.segments] == [segment(0, 0), segment(1, 0), segment(1, 1)]
    assert both.baseline == pytest.approx((0.9 + 0.1 + 0.1 + 0.5 + 0.2 + 0.2 + 0.1) / 7)
    await judged_epoch(harness, 2, [0.3, 0.3, 0.3, 0.3])
    later = await imitated(harness, 3)
    assert later is not None
    assert [one.score for one in later.segments] == [0.5, 0.3, 0.3], "epoch 0 is too long ago"


async def test_nothing_is_imitated_if_no_segment_stands_out() -> None:
    harness = await started_run(imitation={"mode": "awr"})
    await judged_epoch(harness, 0, [0.4] * SEGMENTS)
    assert await imitated(harness, 1) is None


async def test_a_score_of_other_bytes_is_ignored() -> None:
    harness = await started_run(imitation={"mode": "sil"})
    await judged_epoch(harness, 0, [0.9, 0.5, 0.1], other_bytes=0)
    found = await imitated(harness, 1)
    assert found is not None
    assert [one.score for one in found.segments] == [0.5, 0.1]


async def test_what_the_archive_demonstrates_is_pinned_in_the_next_order() -> None:
    harness = await started_run(epochs=3, imitation={"mode": "sil", "source": "archive"})
    assert (await harness.start_order(0)).demonstrations is None
    one = TrajectoryRef(entry=4, steps=30, key="models/t", digest=Digest("a" * 64))
    chosen = ArchiveDemonstrations(imitated=[one], backward=BackwardStage(trajectory=one, left=[20]))
    finished = await harness.train(0, demonstrations=chosen.model_dump())
    await harness.judge(0)
    await harness.train_reward_model(0)
    await harness.passes()
    order = await harness.start_order(1)
    assert order.demonstrations == finished.demonstrations == chosen
    assert order.imitation is None, "judged segments are no source of this run"


async def test_by_default_a_run_imitates_nothing() -> None:
    harness = await started_run()
    await judged_epoch(harness, 0, [0.9, 0.5, 0.1])
    assert await imitated(harness, 1) is None


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [("observation", "pixels/v1", "obs/v2"), ("learners", 2, "learners 1"), ("guidance", {"mode": "model"}, "none")],
)
def test_imitation_refuses_what_it_cannot_learn_from(field: str, value: object, reason: str) -> None:
    with pytest.raises(ValueError, match=f"imitation needs .*{reason}"):
        RunConfig.model_validate({"imitation": {"mode": "sil"}, field: value})


@pytest.mark.parametrize(
    ("restarts", "source"),
    [({}, "archive"), ({"share": 0.5}, "archive"), ({"share": 0.5, "mode": "backward"}, "judged")],
    ids=["no restarts", "no curriculum", "no archive"],
)
def test_ways_back_need_the_trajectory_of_a_curriculum(restarts: dict[str, object], source: str) -> None:
    imitation = {"mode": "sil", "source": source, "recovery_share": 0.2}
    with pytest.raises(ValueError, match=r"recovery_share shows ways back to the backward curriculum's trajectory"):
        RunConfig.model_validate({"imitation": imitation, "restarts": restarts})
    both = {"imitation": imitation | {"source": "archive"}, "restarts": {"share": 0.5, "mode": "backward"}}
    assert RunConfig.model_validate(both).imitation.recovery_share == 0.2


def test_trajectories_of_own_strikes_are_imitated() -> None:
    RunConfig.model_validate({"imitation": {"mode": "sil", "source": "archive"}, "options": "strike/v1"})


@pytest.mark.parametrize(("field", "value"), [("planner", {"mode": "rules"}), ("options", "options/v1")])
def test_trajectories_of_assisted_play_are_not_imitated(field: str, value: object) -> None:
    RunConfig.model_validate({"imitation": {"mode": "sil"}, field: value})
    with pytest.raises(ValueError, match=r"imitation\.source archive and both need planner\.mode none"):
        RunConfig.model_validate({"imitation": {"mode": "sil", "source": "both"}, field: value})
