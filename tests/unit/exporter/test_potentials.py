"""Exports hold the potential of each state, by the reward model that shaped the segment."""

import json
import threading
from dataclasses import replace

import numpy as np
import pytest
import structlog.testing

from services.exporter.adapters.orders import EpochOrders
from services.exporter.adapters.potentials import Potentials
from services.exporter.adapters.scores import ScoreLookup
from services.exporter.domain.manifest import POTENTIAL, ExportManifest
from services.exporter.render import RenderOptions
from services.exporter.segment_exporter import SegmentExporter
from services.exporter.wiring import game_opener
from services.trainer.domain.shaping import ConservativePotential
from shared import rewardnet
from shared.contracts.epoch import EpochStart, RewardModelRef
from shared.contracts.ids import Digest
from shared.game.observation import counters
from shared.game.recording.segment import Segment, read_segment, write_segment
from shared.rewardnet import RewardNet
from shared.state.segments import list_segments
from shared.store import keys
from shared.store.port import Store
from tests.unit.exporter.recorded_play import RUN, parts

KEY = f"{keys.reward_model_prefix(RUN, 0)}rm.safetensors"


async def shape_the_epoch(store: Store) -> tuple[EpochStart, bytes, Digest]:
    """Let a random reward model shape epoch 0; return the order before, and the model's file with its digest."""
    raw = rewardnet.dump(rewardnet.random_weights(3, 1, "counters/v1"))
    digest = Digest(await store.put(KEY, raw))
    model = RewardModelRef(epoch=0, weights_key=KEY, weights_digest=digest, card_key=KEY, card_digest=digest)
    order = EpochStart.from_bytes(await store.get(keys.epoch_start(RUN, 0)))
    await store.put(keys.epoch_start(RUN, 0), order.model_copy(update={"reward_model": model}).to_bytes())
    return order, raw, digest


def potentials(store: Store) -> Potentials:
    return Potentials(store, EpochOrders(store))


async def test_a_data_set_contains_the_potential_of_the_model_that_shaped(store: Store) -> None:
    order, raw, digest = await shape_the_epoch(store)
    segment = await recorded_segment(store)
    assert await potentials(store).of(segment) is None, "nothing shaped it"
    shaped = replace(segment, manifest=segment.manifest.model_copy(update={"reward_model": digest}))
    assert segment.counters is not None
    inputs = counters.features(segment.counters)
    used = ConservativePotential.from_bytes(raw, "counters/v1", order.config.shaping.conservatism)(inputs)
    found = await potentials(store).of(shaped)
    assert found is not None
    assert np.array_equal(found, used)
    assert found.std() > 0, "it varies along the segment"


async def test_an_export_holds_the_potential_of_a_shaped_segment(store: Store) -> None:
    _, _, digest = await shape_the_epoch(store)
    options = RenderOptions(frames=False, video=False)
    exporter = SegmentExporter(store, ScoreLookup(store), game_opener(None), options)
    shaped, plain = (await list_segments(store, RUN)).items()
    recorded = await store.get(shaped[0].key)
    facts, members = parts(recorded)
    members = replace(members, counters=read_segment(recorded).counters)
    await store.put(shaped[0].key, write_segment({**facts, "reward_model": digest}, members))
    for _, place in (plain, shaped):
        await exporter.export(place)
    files = [
        ExportManifest.from_bytes(await store.get(f"{keys.export_prefix(*place)}manifest.json")).files
        for _, place in (plain, shaped)
    ]
    assert [POTENTIAL in names for names in files] == [False, True]
    stored = json.loads(await store.get(f"{keys.export_prefix(*shaped[1])}{POTENTIAL}", files[1][POTENTIAL]))
    expected = await potentials(store).of(read_segment(await store.get(shaped[0].key)))
    assert expected is not None
    assert stored == pytest.approx(expected.tolist(), abs=1e-6)


@pytest.mark.parametrize(("present", "warned"), [(b"another model", [True]), (None, [])], ids=["changed", "expired"])
async def test_a_segment_without_its_reward_model_is_exported_without_potentials(
    store: Store, present: bytes | None, warned: list[bool]
) -> None:
    _, _, digest = await shape_the_epoch(store)
    if present is None:
        await store.delete(KEY)
    else:
        await store.put(KEY, present)
    entry, place = next(iter((await list_segments(store, RUN)).items()))
    facts, members = parts(await store.get(entry.key))
    await store.put(entry.key, write_segment({**facts, "reward_model": digest}, members))
    exporter = SegmentExporter(store, ScoreLookup(store), game_opener(None), RenderOptions(frames=False, video=False))
    with structlog.testing.capture_logs() as logs:
        await exporter.export(place)
    manifest = ExportManifest.from_bytes(await store.get(f"{keys.export_prefix(*place)}manifest.json"))
    assert POTENTIAL not in manifest.files
    reasons = [line["reason"] for line in logs if line["event"] == "exporting without potentials"]
    assert [KEY in reason for reason in reasons] == warned


async def test_the_model_of_an_epoch_is_read_once_and_computes_in_a_thread(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, digest = await shape_the_epoch(store)
    for entry in await list_segments(store, RUN):
        raw = await store.get(entry.key)
        facts, members = parts(raw)
        shaped = replace(members, counters=read_segment(raw).counters)
        await store.put(entry.key, write_segment({**facts, "reward_model": digest}, shaped))
    read: list[str] = []
    threads: list[threading.Thread] = []
    get, forward = store.get, RewardNet.forward

    async def watched_get(key: str, digest: str | None = None) -> bytes:
        read.append(key)
        return await get(key, digest)

    def watched_forward(network: RewardNet, states: rewardnet.Floats) -> rewardnet.Floats:
        threads.append(threading.current_thread())
        return forward(network, states)

    monkeypatch.setattr(store, "get", watched_get)
    monkeypatch.setattr(RewardNet, "forward", watched_forward)
    options = RenderOptions(frames=False, video=False)
    exporter = SegmentExporter(store, ScoreLookup(store), game_opener(None), options)
    for place in (await list_segments(store, RUN)).values():
        await exporter.export(place)
    assert read.count(keys.epoch_start(RUN, 0)) == 1
    assert read.count(KEY) == 1
    assert len(threads) == 2
    assert threading.main_thread() not in threads


async def recorded_segment(store: Store) -> Segment:
    """The first recorded segment of the run."""
    entry = next(iter(await list_segments(store, RUN)))
    return read_segment(await store.get(entry.key))
