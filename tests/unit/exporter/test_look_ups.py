"""What an export looks up beside the segment: scores, orders and reward models, those of the segment's own epoch."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import structlog.testing

from services.exporter.adapters.orders import EpochOrders
from services.exporter.adapters.scores import ScoreLookup
from services.exporter.render import RenderOptions
from services.exporter.settings import ExporterSettings, ExportGroup
from services.exporter.wiring import render_options, wire
from shared.bus.memory import MemoryBus
from shared.contracts.epoch import EpochStart
from shared.contracts.ids import Digest, RunId
from shared.contracts.run import RunConfig
from shared.game.recording.segment import Segment
from shared.runtime.service import ServicePorts
from shared.store import keys
from shared.store.memory import MemoryStore
from shared.store.port import NotFound, Store
from tests.events import segment_ready
from tests.unit.exporter.recorded_play import RUN
from tests.unit.exporter.test_parquet import judged_by
from tests.unit.exporter.test_potentials import potentials, recorded_segment, shape_the_epoch


async def test_an_epochs_best_segments_are_compared_with_their_own_epoch() -> None:
    store = MemoryStore()
    for epoch, weighted in ((0, 0.9), (1, 0.2)):
        scores = judged_by([[3]]).model_copy(update={"epoch": epoch, "weighted": weighted})
        await store.put(keys.score(scores.run, epoch, scores.segment), scores.to_bytes())
    lookup = ScoreLookup(store)
    assert [await lookup.weighted(scores.run, epoch) for epoch in (0, 1, 0)] == [[0.9], [0.2], [0.9]]


async def test_each_epoch_is_replayed_with_its_own_order() -> None:
    store = MemoryStore()
    for epoch, world in ((0, "garden"), (1, "vale")):
        order = EpochStart(run=RUN, epoch=epoch, fence=1, config=RunConfig(world=world), created=datetime.now(UTC))
        await store.create(keys.epoch_start(RUN, epoch), order.to_bytes())
    orders = EpochOrders(store)
    assert [(await orders.of(RUN, epoch)).config.world for epoch in (0, 1, 0)] == ["garden", "vale", "garden"]


async def shaped_segment(store: Store) -> tuple[Segment, str]:
    """A recorded segment that a reward model shaped, and the key of this model."""
    _, _, digest = await shape_the_epoch(store)
    segment = await recorded_segment(store)
    manifest = segment.manifest.model_copy(update={"reward_model": digest})
    return replace(segment, manifest=manifest), f"{keys.reward_model_prefix(RUN, 0)}rm.safetensors"


async def test_a_segment_whose_reward_model_expired_has_no_potential(store: Store) -> None:
    segment, model = await shaped_segment(store)
    await store.delete(model)
    assert await potentials(store).of(segment) is None


async def test_a_segment_whose_reward_model_is_damaged_has_no_potential(store: Store) -> None:
    segment, model = await shaped_segment(store)
    order = EpochStart.from_bytes(await store.get(keys.epoch_start(RUN, 0)))
    assert order.reward_model is not None
    stored = Digest(await store.put(model, b"cut off"))  # as the order names it: it was damaged before
    damaged = order.reward_model.model_copy(update={"weights_digest": stored})
    changed = order.model_copy(update={"reward_model": damaged})
    await store.put(keys.epoch_start(RUN, 0), changed.to_bytes())
    assert await potentials(store).of(segment) is None


async def test_no_potential_comes_from_a_model_that_did_not_shape(store: Store) -> None:
    segment, model = await shaped_segment(store)
    await store.put(model, await store.get(model) + b" ")
    with structlog.testing.capture_logs() as logs:
        assert await potentials(store).of(segment) is None
    assert [(line["log_level"], f"'{model}' has SHA-256" in line["reason"]) for line in logs] == [("warning", True)]


@pytest.mark.parametrize("off", ["frames", "video", "overlay"])
def test_the_settings_switch_each_file_off_alone(off: str) -> None:
    assert render_options(ExportGroup.model_validate({off: False, "scale": 5})) == RenderOptions(
        scale=5, **{off: False}
    )


async def wired(store: Store, slots: int = 1) -> tuple[object, int]:
    """What the service answers to a segment's event, and how many segments it replays in parallel."""
    settings = ExporterSettings.model_validate(
        {"store": {"url": "memory://"}, "export": {"slots": slots, "policy": "all"}}
    )
    (consumer,) = (await wire(settings, ServicePorts(MemoryBus(), store, asyncio.Event()))).consumers
    return await consumer.handler(segment_ready(run=RunId("gone"))), consumer.slots


async def test_the_service_ignores_events_of_deleted_runs_only() -> None:
    store = MemoryStore()
    with pytest.raises(NotFound, match="no object"):
        await wired(store)
    await store.put(keys.deleted_run(RunId("gone")), b"gone")
    assert await wired(store, slots=3) == ([], 3)
