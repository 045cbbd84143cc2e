"""Runs of `zelda epoch` in a shared store: no coordinator takes them over, and it says so."""

import pytest

from cli.commands.epoch import _require_kept_fields, _start_or_resume
from cli.errors import CONFLICT, CliError
from services.coordinator.domain.lifecycle import RunConflict
from services.coordinator.handlers import Handlers
from shared.contracts.base import sha256
from shared.contracts.envelope import wrap
from shared.contracts.events import RmTrained
from shared.contracts.ids import Digest, RunId
from shared.contracts.run import RunConfig
from shared.state.runs import RunRecords
from shared.store import keys
from tests.unit.coordinator.harness import RUN, Harness, judged_epoch, started_run

SINGLE = RunId("single")


async def test_a_coordinator_leaves_a_single_epoch_alone() -> None:
    harness = Harness()
    runs = RunRecords(harness.store)
    started = await _start_or_resume(runs, SINGLE, RunConfig())
    await harness.passes(3, seconds=1_000)  # beyond the silence after which it fails a run
    assert await runs.latest(SINGLE) == started
    assert not await harness.store.exists(keys.epoch_start(SINGLE, 0))


async def test_a_late_event_of_a_single_epochs_run_orders_nothing() -> None:
    harness = await judged_epoch()
    await harness.service.stop(RUN)
    await harness.passes(2)
    runs = RunRecords(harness.store)
    started = await _start_or_resume(runs, RUN, RunConfig())
    card = await harness.train_reward_model(0)  # of the epoch that the coordinator ordered before
    key = keys.reward_model_card(RUN, 0)
    trained = RmTrained(run=RUN, epoch=0, key=key, digest=Digest(sha256(card.to_bytes())))
    await Handlers(harness.reconciler).handle(wrap(trained, source="rewardmodel", fence=1))
    assert await runs.latest(RUN) == started
    assert not await harness.store.exists(keys.epoch_start(RUN, 1))


@pytest.mark.parametrize("command", ["stop", "resume"])
async def test_commands_for_a_single_epoch_are_refused(command: str) -> None:
    harness = Harness()
    await _start_or_resume(RunRecords(harness.store), SINGLE, RunConfig())
    with pytest.raises(RunConflict, match="trained by `zelda epoch`"):
        await getattr(harness.service, command)(SINGLE)


async def test_a_single_epoch_does_not_take_a_run_from_its_coordinator() -> None:
    harness = await started_run()
    with pytest.raises(CliError, match="a coordinator trains it: stop it with") as refusal:
        await _start_or_resume(RunRecords(harness.store), RUN, RunConfig())
    assert refusal.value.code == CONFLICT


async def test_another_value_for_a_run_that_exists_is_refused() -> None:
    runs = RunRecords(Harness().store)
    await _require_kept_fields(runs, SINGLE, ["epochs=6"])  # the run does not exist yet
    await _start_or_resume(runs, SINGLE, RunConfig(epochs=6))
    await _require_kept_fields(runs, SINGLE, ["epochs=6", "shaping.mode=gain"])
    with pytest.raises(CliError, match="--set epochs=9: single began with another value") as refused:
        await _require_kept_fields(runs, SINGLE, ["epochs=9", "world=vale"])
    assert refused.value.code == CONFLICT


async def test_a_single_epoch_of_an_earlier_version_goes_on() -> None:
    harness = Harness()
    runs = RunRecords(harness.store)
    first = await _start_or_resume(runs, SINGLE, RunConfig())
    earlier = first.model_copy(update={"revision": 1, "state": "stopped", "external": False})
    await runs.append(earlier)
    assert (await _start_or_resume(runs, SINGLE, RunConfig())).external


async def test_a_single_epoch_continues_an_ended_run() -> None:
    harness = Harness()
    await harness.create_run()
    runs = RunRecords(harness.store)
    await harness.service.stop(RUN)
    assert (await runs.latest(RUN)).state == "stopped"
    assert (await _start_or_resume(runs, RUN, RunConfig())).external
    with pytest.raises(RunConflict, match="trained by `zelda epoch`"):
        await harness.service.resume(RUN)


async def test_a_single_epoch_does_not_bring_a_deleted_run_back() -> None:
    harness = Harness()
    runs = RunRecords(harness.store)
    first = await _start_or_resume(runs, SINGLE, RunConfig())
    await runs.append(first.model_copy(update={"revision": 1, "state": "stopped"}))
    await harness.service.delete(SINGLE)
    with pytest.raises(CliError, match="Run single was deleted and its name stays taken") as refused:
        await _start_or_resume(runs, SINGLE, RunConfig())
    assert refused.value.code == CONFLICT
    assert [entry.key for entry in await harness.store.list("models/")] == [keys.deleted_run(SINGLE)]
