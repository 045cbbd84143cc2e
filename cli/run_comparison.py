"""Compares two runs object by object: orders, segments, scores, epoch figures, reward models.

Runs with equal configuration and seed are equal in these under any names, as long as the same segments are judged
(docs/architecture.md). Times, fences, run names, and digests of objects that hold any of them are left out.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from cli.service_settings import load_settings, reachable_store, require_store
from cli.unknown_run import require_run
from services.exporter.adapters.trackers import flat_config
from shared.config.settings import StoreSettings
from shared.contracts.archive import read_manifest
from shared.contracts.base import Contract, sha256
from shared.contracts.card import RewardModelCard
from shared.contracts.driver import EVALUATION_S
from shared.contracts.epoch import EpochFinishedRecord, EpochStart
from shared.contracts.ids import RunId
from shared.contracts.scores import SegmentScores
from shared.state.documents import read_document
from shared.state.segments import list_segments
from shared.store import keys
from shared.store.open import open_store
from shared.store.port import Store
from shared.store.provision import ProvisionSettings as StoreOnly

Document = TypeVar("Document", bound=Contract)
READS: Final = 16  # concurrent reads
ORDER: Final = "order"
EXAMPLES: Final = 3  # names shown per kind
MOVING_FIGURES: Final = re.compile(rf"steps_per_s|{EVALUATION_S}")  # of an epoch: times
# Times, names of runs, and digests of objects that hold a time.
MANIFEST_PLAY: Final = {"run", "created", "checkpoint"}
SCORE_ORIGIN: Final = {"run", "created", "segment_key", "segment_digest"}
CARD_ORIGIN: Final = {"run", "created", "seconds", "weights_key", "data_digest", "history"}


@dataclass(frozen=True, slots=True)
class Difference:
    """One kind of object in one epoch: how many are equal, and the names of those that differ or that one run lacks.

    Of an order, `differing` has fields with both values, e.g. `shaping.mode: "gain" | "none"`.
    """

    epoch: int
    kind: str
    equal: int
    differing: tuple[str, ...]

    @property
    def examples(self) -> str:
        """The first names that differ, for a table."""
        return ", ".join(self.differing[:EXAMPLES])


@dataclass(frozen=True, slots=True)
class RunSide:
    """One run in its store."""

    store: Store
    run: RunId

    async def document(self, kind: type[Document], key: str) -> Document | None:
        """A document, or None if it does not exist. ContractError, which names its key, if it is damaged."""
        return await read_document(self.store, kind, key) if await self.store.exists(key) else None


Content = Mapping[str, str]
"""Digest of what may not differ, by the object's name within its epoch."""


def differences(first: RunId, second: RunId, other_store: Path | None) -> list[Difference]:
    """Compare two runs of the environment's store, or that of the system that runs or ran here.

    The second may be in a directory. CliError if a run does not exist.
    """
    with reachable_store():
        store = open_store(load_settings(StoreOnly).store)
        other = _store_in(other_store) if other_store else store
        return asyncio.run(_differences(RunSide(store, first), RunSide(other, second)))


def _store_in(directory: Path) -> Store:
    require_store(directory, "--other-store")
    return open_store(StoreSettings(url=f"file://{directory.absolute()}"))


async def _differences(first: RunSide, second: RunSide) -> list[Difference]:
    for side in (first, second):
        await require_run(side.store, side.run)
    return [difference async for difference in compare_runs(first, second)]


async def compare_runs(first: RunSide, second: RunSide) -> AsyncIterator[Difference]:
    """Yield each epoch's kinds of objects in the order in which they arise: the first difference is the cause."""
    epoch = 0
    while await _has_epoch(first, epoch) or await _has_epoch(second, epoch):
        for kind, read in KINDS.items():
            yield _difference(epoch, kind, await read(first, epoch), await read(second, epoch))
        epoch += 1


async def _has_epoch(side: RunSide, epoch: int) -> bool:
    return await side.store.exists(keys.epoch_start(side.run, epoch))


def _difference(epoch: int, kind: str, first: Content, second: Content) -> Difference:
    names = first.keys() | second.keys()
    differing = sorted(name for name in names if first.get(name) != second.get(name))
    shown = [f"{name}: {first.get(name)} | {second.get(name)}" for name in differing] if kind == ORDER else differing
    return Difference(epoch, kind, len(names) - len(differing), tuple(shown))


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode())


async def _orders(side: RunSide, epoch: int) -> Content:
    start = await side.document(EpochStart, keys.epoch_start(side.run, epoch))
    if start is None:
        return {}
    model = start.reward_model.weights_digest if start.reward_model else None
    imitated = [(one.segment, one.score) for one in start.imitation.segments] if start.imitation else []
    fields = flat_config(start.config.model_dump(mode="json"))
    return {
        **{name: json.dumps(value) for name, value in fields.items()},
        "reward model": model or "none",
        "imitated segments": _digest(imitated),
    }


async def _segments(side: RunSide, epoch: int) -> Content:
    places = await list_segments(side.store, side.run, epoch)

    async def read(key: str) -> str:
        manifest = read_manifest(await side.store.get(key))
        return _digest(manifest.model_dump(mode="json", exclude=MANIFEST_PLAY))

    return await _read_all({place.segment: entry.key for entry, place in places.items()}, read)


async def _scores(side: RunSide, epoch: int) -> Content:
    listed = [entry.key for entry in await side.store.list(keys.scores_prefix(side.run, epoch))]
    scored = {
        key.rpartition("/")[2].removesuffix(".json"): key for key in listed if keys.is_score(key, side.run, epoch)
    }

    async def read(key: str) -> str:
        score = await read_document(side.store, SegmentScores, key)
        judges = {"judges": {"__all__": {"usage"}}}  # a cached reply costs nothing
        return _digest(score.model_dump(mode="json", exclude={**dict.fromkeys(SCORE_ORIGIN, True), **judges}))

    return await _read_all(scored, read)


async def _read_all(named: Mapping[str, str], read: Callable[[str], Awaitable[str]]) -> Content:
    slots = asyncio.Semaphore(READS)

    async def bounded(key: str) -> str:
        async with slots:
            return await read(key)

    return dict(zip(named, await asyncio.gather(*map(bounded, named.values())), strict=True))


async def _figures(side: RunSide, epoch: int) -> Content:
    finished = await side.document(EpochFinishedRecord, keys.epoch_finished(side.run, epoch))
    if finished is None:
        return {}
    figures = {f"evaluation {name}": value for name, value in (finished.evaluation or {}).items()} | finished.metrics
    listed = [segment.segment for segment in finished.segments]
    counts = {"steps": finished.steps, "episodes": finished.episodes, "list of segments": sorted(listed)}
    return {name: _digest(value) for name, value in (figures | counts).items() if not MOVING_FIGURES.fullmatch(name)}


async def _reward_models(side: RunSide, epoch: int) -> Content:
    card = await side.document(RewardModelCard, keys.reward_model_card(side.run, epoch))
    if card is None:
        return {}
    fields = card.model_dump(mode="json", exclude=CARD_ORIGIN)
    fields["earlier models"] = [model.weights_digest for model in card.history]
    return {name: _digest(value) for name, value in fields.items()}


KINDS: Final[dict[str, Callable[[RunSide, int], Awaitable[Content]]]] = {
    ORDER: _orders,
    "segments": _segments,
    "figures": _figures,
    "scores": _scores,
    "reward model": _reward_models,
}
