"""From scores to a committed card: complete, at the deadline, after crashes, and while scores arrive."""

import asyncio
import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
import torch
from prometheus_client import REGISTRY

from services.rewardmodel.offline import train_epoch
from services.rewardmodel.settings import GateSettings, RewardModelGroup
from services.rewardmodel.training.pipeline import train_in_thread
from services.rewardmodel.training_protocol import TrainingRequest, TrainingResult
from shared.contracts.base import sha256
from shared.contracts.events import RmTrained
from shared.errors import Transient
from shared.process import failpoints
from shared.rewardnet import RewardNet
from shared.store import keys
from shared.store.port import NotFound
from tests.unit.rewardmodel.harness import QUICK, RUN, Harness

LONG_AGO = datetime.now(UTC) - timedelta(hours=1)


async def test_complete_scores_train_a_model_and_announce_its_card() -> None:
    world = Harness(group=QUICK.model_copy(update={"steps": 600}))
    finished = await world.play(0)
    await world.judge(0, await world.listed(0))
    handlers = world.service()

    (event,) = await handlers.epoch_finished(finished)

    card = await world.card(0)
    assert isinstance(event.data, RmTrained)
    assert event.data.digest == sha256(await world.store.get(event.data.key))
    assert event.fence == finished.fence
    assert card.segments == 96
    assert card.episodes == 24
    assert card.outcomes == {"judged": 96, "abstained": 0, "dead": 0, "missing": 0}
    assert card.accuracy.confident is not None
    assert card.accuracy.confident > 0.75
    assert card.gates["beats_step_index"]
    assert sum(card.sensitivity[name] for name in ("x", "y", "tile_x", "tile_y")) > 0.5 * sum(card.sensitivity.values())
    net = RewardNet.from_bytes(await world.store.get(card.weights_key, card.weights_digest), "obs/v1")
    assert net.weights.temperature == pytest.approx(card.calibration.temperature if card.calibration else 0)


async def test_a_model_is_trained_once_without_bus_and_waiting() -> None:
    world = Harness()
    await world.play(0)
    await world.judge(0, (await world.listed(0))[:60])  # the deadline is far away, and 36 scores are missing
    stored = await train_epoch(QUICK, world.store, RUN, 0, train_in_thread)
    assert stored.card == await world.card(0)
    assert stored.card.outcomes == {"judged": 60, "abstained": 0, "dead": 0, "missing": 36}
    assert await train_epoch(QUICK, world.store, RUN, 0, unexpected_training) == stored


async def test_a_model_of_an_unfinished_epoch_is_refused() -> None:
    with pytest.raises(NotFound):
        await train_epoch(QUICK, Harness().store, RUN, 0, unexpected_training)


async def test_an_epoch_without_judges_gets_no_model() -> None:
    world = Harness(judge_interval=2, training=unexpected_training)
    assert await world.service().epoch_finished(await world.play(1, episodes=0)) == []
    with pytest.raises(NotFound):
        await world.card(1)


async def test_a_run_with_pixel_observations_gets_a_model_of_features() -> None:
    world = Harness(observation="pixels/v1")
    finished = await world.play(0, episodes=8)
    await world.judge(0, await world.listed(0))
    await world.service().epoch_finished(finished)

    card = await world.card(0)
    assert (card.observation, card.segments) == ("obs/v1", 32)


async def test_plain_copies_equal_the_committed_weights() -> None:
    world = Harness()
    finished = await world.play(0, episodes=8)
    await world.judge(0, await world.listed(0))
    await world.service().epoch_finished(finished)
    card, prefix = await world.card(0), keys.reward_model_prefix(RUN, 0)
    assert sha256(await world.store.get(f"{prefix}rm.safetensors")) == card.weights_digest
    state = torch.load(io.BytesIO(await world.store.get(f"{prefix}rm.pt")), weights_only=True)
    assert state["hidden1_weight"].shape == (5, 128, 64)


async def test_the_handler_waits_for_the_last_listed_score_despite_repeats() -> None:
    world = Harness()
    finished = await world.play(0, episodes=8)
    first, *others = await world.listed(0)
    handlers = world.service()
    for event in await world.judge(0, others):
        await handlers.score_ready(event)
        await handlers.score_ready(event)  # repeats are no progress
    waiting = asyncio.create_task(handlers.epoch_finished(finished))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    for event in await world.judge(0, [first]):
        await handlers.score_ready(event)
    await asyncio.wait_for(waiting, 60)
    assert (await world.card(0)).outcomes["missing"] == 0


async def test_abstained_and_dead_segments_are_outcomes_without_ratings() -> None:
    world = Harness()
    finished = await world.play(0, episodes=12)
    listed = await world.listed(0)
    await world.judge(0, listed[:40])
    await world.judge(0, listed[40:44], "abstained")
    await world.judge(0, listed[44:], "dead")
    await world.service().epoch_finished(finished)
    card = await world.card(0)
    assert card.segments == 40
    assert card.outcomes == {"judged": 40, "abstained": 4, "dead": 4, "missing": 0}


async def test_a_quorum_trains_at_the_deadline() -> None:
    world = Harness()
    finished = await world.play(0, ended=LONG_AGO)
    listed = await world.listed(0)
    await world.judge(0, listed[:72])
    await world.service().epoch_finished(finished)
    card = await world.card(0)
    assert card.outcomes["missing"] == 24
    assert card.gates["quorum"]


async def test_a_card_without_a_quorum_fails_its_gates_with_a_note() -> None:
    world = Harness()
    finished = await world.play(0, ended=LONG_AGO)
    await world.judge(0, (await world.listed(0))[:10])
    await world.service().epoch_finished(finished)
    card = await world.card(0)
    assert not card.gates["quorum"]
    assert not card.gates_passed
    assert any("Too few of the epoch's segments were judged" in note for note in card.notes)


async def test_no_note_blames_the_deadline_for_abstentions() -> None:
    world = Harness()
    finished = await world.play(0, episodes=4)
    first, *others = await world.listed(0)
    await world.judge(0, [first])
    await world.judge(0, others, "abstained")
    await world.service().epoch_finished(finished)
    card = await world.card(0)
    assert not card.gates["quorum"]
    assert [note for note in card.notes if "deadline" in note] == []


async def test_an_epoch_of_a_stopped_run_is_deferred_until_the_resume() -> None:
    world = Harness()
    finished = await world.play(0, episodes=8, ended=LONG_AGO)
    first, *others = await world.listed(0)
    await world.judge(0, [first])
    handlers = world.service()
    await world.set_run_state("stopped", revision=0)
    assert await handlers.epoch_finished(finished) == []
    assert not await world.store.exists(keys.reward_model_card(RUN, 0))

    await world.set_run_state("running", revision=1)
    waiting = asyncio.create_task(handlers.epoch_finished(finished))  # the coordinator republishes the event
    await asyncio.sleep(0.3)
    assert not waiting.done()
    for event in await world.judge(0, others):
        await handlers.score_ready(event)
    await asyncio.wait_for(waiting, 60)
    assert (await world.card(0)).outcomes["missing"] == 0


async def test_a_run_deleted_during_its_training_gets_no_model() -> None:
    world = Harness()

    async def deleted_meanwhile(request: TrainingRequest, should_cancel: Callable[[], bool]) -> TrainingResult:
        for entry in await world.store.list(keys.run_prefix(RUN)):
            await world.store.delete(entry.key)
        return await train_in_thread(request, should_cancel)

    world.training = deleted_meanwhile
    finished = await world.play(0, episodes=2, ended=LONG_AGO)
    before = committed_models()
    assert await world.service().epoch_finished(finished) == []
    assert await world.store.list(keys.run_prefix(RUN)) == []
    assert committed_models() == before, "a discarded model is not counted"


def committed_models() -> float:
    counted = (
        REGISTRY.get_sample_value("zelda_rewardmodel_trained_total", {"passed": one}) for one in ("true", "false")
    )
    return sum(value or 0 for value in counted)


async def test_a_committed_model_is_counted_once() -> None:
    world = Harness()
    finished = await world.play(0, episodes=2, ended=LONG_AGO)
    before = committed_models()
    for _ in range(2):
        assert await world.service().epoch_finished(finished)
    assert committed_models() == before + 1


async def test_no_scores_give_a_neutral_model_that_fails_its_gates() -> None:
    world = Harness()
    finished = await world.play(0, episodes=2, ended=LONG_AGO)
    await world.service().epoch_finished(finished)
    card = await world.card(0)
    assert card.fit == "none"
    assert card.segments == 0
    assert not card.gates_passed
    assert card.accuracy.confident is None
    assert "no two labelled segments" in card.notes[0]
    net = RewardNet.from_bytes(await world.store.get(card.weights_key), "obs/v1")
    assert not net.forward(torch.rand(3, 128).numpy()).any()


async def unexpected_training(request: TrainingRequest, should_cancel: Callable[[], bool]) -> TrainingResult:
    """A training that must not run."""
    raise AssertionError("an unexpected training")


async def test_a_repeated_event_announces_the_same_card_without_training() -> None:
    world = Harness()
    finished = await world.play(0, episodes=8)
    await world.judge(0, await world.listed(0))
    handlers = world.service()
    (first,) = await handlers.epoch_finished(finished)
    before, world.training = await world.card(0), unexpected_training
    (second,) = await world.service().epoch_finished(finished)
    assert second.id == first.id
    assert await world.card(0) == before


async def test_the_next_process_recovers_a_crash_between_weights_and_card(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = Harness()
    finished = await world.play(0, episodes=8)
    await world.judge(0, await world.listed(0))
    monkeypatch.setenv("ZELDA_FAILPOINTS", "rewardmodel.after_weights=error:1")
    failpoints.arm()
    with pytest.raises(Transient, match="failpoint"):
        await world.service().epoch_finished(finished)
    assert not await world.store.exists(keys.reward_model_card(RUN, 0))

    (event,) = await world.service().epoch_finished(finished)
    card = await world.card(0)
    assert event.data.key == keys.reward_model_card(RUN, 0)
    # Equal data give equal seeds and weights, so the card names the first attempt's file.
    weights = [entry.key for entry in await world.store.list(keys.reward_model_prefix(RUN, 0)) if "rm-" in entry.key]
    assert weights == [card.weights_key]


async def test_two_concurrent_processes_agree_on_one_card() -> None:
    world = Harness()
    finished = await world.play(0, episodes=8)
    await world.judge(0, await world.listed(0))
    first, second = world.service(), world.service()
    ((one,), (two,)) = await asyncio.gather(first.epoch_finished(finished), second.epoch_finished(finished))
    assert one.id == two.id


async def test_a_repeated_event_occupies_no_slot_during_the_training() -> None:
    world = Harness()
    finished = await world.play(0, episodes=8)
    handlers = world.service()
    waiting = asyncio.create_task(handlers.epoch_finished(finished))
    await asyncio.sleep(0.1)
    assert await asyncio.wait_for(handlers.epoch_finished(finished), 1) == []
    for event in await world.judge(0, await world.listed(0)):
        await handlers.score_ready(event)
    (first,) = await asyncio.wait_for(waiting, 60)
    (later,) = await handlers.epoch_finished(finished)
    assert later.id == first.id


@pytest.mark.parametrize("lost", ["weights damaged", "weights gone", "card damaged"])
async def test_an_unreadable_earlier_model_is_not_continued(lost: str) -> None:
    world = Harness()
    for epoch in (0, 1):
        finished = await world.play(epoch, episodes=8)
        await world.judge(epoch, await world.listed(epoch))
        if epoch:
            await world.corrupt(0, lost)
        await world.service().epoch_finished(finished)
    card = await world.card(1)
    assert set(card.validation_loss) == {"full", "strict"}
    assert card.segments == 64


async def test_the_next_epoch_uses_old_segments_and_cites_passed_models() -> None:
    world = Harness(group=QUICK.model_copy(update={"gates": GateSettings(ece=1.0, accuracy_all=0.5)}))
    for epoch in (0, 1):
        finished = await world.play(epoch)
        await world.judge(epoch, await world.listed(epoch))
        await world.service().epoch_finished(finished)
    first, second = await world.card(0), await world.card(1)
    assert first.gates_passed, first.gates
    assert second.segments == 192
    assert set(second.validation_loss) == {"full", "strict", "warm"}
    assert second.fit == min(second.validation_loss, key=second.validation_loss.__getitem__)
    assert [model.weights_digest for model in second.history] == [first.weights_digest]
    assert [(row.epoch, row.segments, row.milestones) for row in second.epochs] == [(0, 96, 0.0), (1, 96, 1.0)]
    assert second.data_digest != first.data_digest


async def test_neither_time_nor_order_of_scores_changes_a_model() -> None:
    """Two runs with equal seeds get byte-equal models, in the epoch that continues the first one, too."""
    first = await _models_of_two_epochs(Harness(), LONG_AGO, backwards=False)
    second = await _models_of_two_epochs(Harness(), datetime.now(UTC), backwards=True)
    assert first == second
    other = await _models_of_two_epochs(Harness(seed=1), LONG_AGO, backwards=False)
    assert not set(first) & set(other)


async def _models_of_two_epochs(world: Harness, judged: datetime, *, backwards: bool) -> list[str]:
    """Digests of the weights after two epochs whose scores were created at `judged`."""
    found: list[str] = []
    for epoch in (0, 1):
        finished = await world.play(epoch, episodes=8)
        listed = await world.listed(epoch)
        await world.judge(epoch, listed[::-1] if backwards else listed, created=judged)
        await world.service().epoch_finished(finished)
        card = await world.card(epoch)
        found.append(card.weights_digest)
    assert "warm" in card.validation_loss
    return found


async def test_a_model_of_before_the_seeds_is_not_continued() -> None:
    """Its episodes were split differently, so it may have trained on what is held out now."""
    world = Harness()
    for epoch in (0, 1):
        finished = await world.play(epoch, episodes=8)
        await world.judge(epoch, await world.listed(epoch))
        if epoch:
            earlier = (await world.card(0)).model_copy(update={"seed": None})
            await world.store.put(keys.reward_model_card(RUN, 0), earlier.to_bytes())
        await world.service().epoch_finished(finished)
    assert set((await world.card(1)).validation_loss) == {"full", "strict"}


async def test_a_stopping_service_returns_its_event() -> None:
    world = Harness()
    finished = await world.play(0, episodes=8)
    handlers = world.service()
    waiting = asyncio.create_task(handlers.epoch_finished(finished))
    await asyncio.sleep(0.1)
    world.stopping.set()
    with pytest.raises(Transient, match="stopping"):
        await asyncio.wait_for(waiting, 5)
    await world.judge(0, await world.listed(0))
    with pytest.raises(Transient, match="cancelled"):
        await asyncio.wait_for(world.service().epoch_finished(finished), 20)


async def test_a_damaged_segment_or_score_is_skipped() -> None:
    world = Harness()
    finished = await world.play(0, episodes=12, ended=LONG_AGO)
    listed = await world.listed(0)
    await world.judge(0, listed[1:])
    await world.store.put(keys.score(RUN, 0, listed[0].segment), b"{")
    await world.store.put(listed[1].key, b"PK damaged")
    await world.service().epoch_finished(finished)
    card = await world.card(0)
    assert card.segments == 46
    assert card.outcomes["missing"] == 1


def test_an_unknown_masked_feature_is_rejected_by_name() -> None:
    with pytest.raises(ValueError, match="obs/v1 has no input step_counter"):
        RewardModelGroup(view="obs/v1", masked=("x", "step_counter"))


async def test_a_masked_feature_is_on_the_card_and_has_no_influence() -> None:
    world = Harness(group=QUICK.model_copy(update={"masked": ("x",)}))
    finished = await world.play(0, episodes=8)
    await world.judge(0, await world.listed(0))
    await world.service().epoch_finished(finished)
    card = await world.card(0)
    assert card.masked == ["x"]
    assert "x" not in card.sensitivity
