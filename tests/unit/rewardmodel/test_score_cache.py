"""The score cache is bounded, and eviction does not disturb concurrent reads."""

from collections.abc import Awaitable, Callable

from services.rewardmodel.adapters.score_cache import CACHED_RUNS, ScoreCache
from shared.contracts.ids import RunId
from shared.store.memory import MemoryStore
from shared.store.port import ObjectEntry
from tests.unit.rewardmodel.harness import RUN, Harness


class InterleavingStore(MemoryStore):
    """A store that runs another coroutine during its next `list` call."""

    interleaved: Callable[[], Awaitable[None]] | None = None

    async def list(self, prefix: str) -> list[ObjectEntry]:
        interleaved, self.interleaved = self.interleaved, None
        if interleaved is not None:
            await interleaved()
        return await super().list(prefix)


async def test_eviction_during_a_read_loses_no_scores() -> None:
    store = InterleavingStore()
    world, scores = Harness(store=store), ScoreCache(store)
    await world.play(0, episodes=1)
    await world.judge(0, await world.listed(0))

    async def read_other_runs() -> None:
        for number in range(CACHED_RUNS):
            await scores.epoch(RunId(f"other-{number}"), 0)

    store.interleaved = read_other_runs
    assert len(await scores.epoch(RUN, 0)) == 4
    assert len(await scores.epoch(RUN, 0)) == 4
