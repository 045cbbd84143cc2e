"""What is remembered of runs is bounded, and bounding it disturbs nobody who is reading."""

from collections.abc import Awaitable, Callable

from services.rewardmodel.adapters.score_cache import CACHED_RUNS, ScoreCache
from shared.contracts.ids import RunId
from shared.store.memory import MemoryStore
from shared.store.port import ObjectEntry
from tests.unit.rewardmodel.harness import RUN, Harness


class Meanwhile(MemoryStore):
    """A store that takes its time with a list: something else happens meanwhile, once."""

    happens: Callable[[], Awaitable[None]] | None = None

    async def list(self, prefix: str) -> list[ObjectEntry]:
        happens, self.happens = self.happens, None
        if happens is not None:
            await happens()
        return await super().list(prefix)


async def test_eviction_during_a_read_loses_no_scores() -> None:
    store = Meanwhile()
    world, scores = Harness(store=store), ScoreCache(store)
    await world.play(0, episodes=1)
    await world.judge(0, await world.listed(0))

    async def others_come() -> None:
        for number in range(CACHED_RUNS):
            await scores.epoch(RunId(f"other-{number}"), 0)

    store.happens = others_come
    assert len(await scores.epoch(RUN, 0)) == 4
    assert len(await scores.epoch(RUN, 0)) == 4
