"""The lease: one holder at a time, a growing fence, and no comparison of clocks between processes."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from prometheus_client import REGISTRY

from shared.errors import Transient
from shared.state.lease import KEPT, Lease
from shared.store import keys
from shared.store.memory import MemoryStore
from shared.store.port import AlreadyExists, NotFound, ObjectEntry
from tests.unit.shared.loop import until

TTL_S = 9.0


class Clock:
    """A clock that advances only on request."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Forgetful(MemoryStore):
    """A store that creates an object and loses the answer on request."""

    lose = False

    async def create(self, key: str, data: bytes) -> str:
        digest = await super().create(key, data)
        if self.lose:
            self.lose = False
            raise Transient("no answer")
        return digest


async def test_first_process_takes_the_lease_and_the_second_waits() -> None:
    store, clock = MemoryStore(), Clock()
    first, second = Lease(store, "c", "first", TTL_S, clock), Lease(store, "c", "second", TTL_S, clock)
    await first.step()
    await second.step()
    assert (first.fence, second.fence) == (1, None)


async def test_first_takeover_is_counted_from_zero() -> None:
    store, clock = MemoryStore(), Clock()
    lease = Lease(store, "watched", "first", TTL_S, clock)
    before = REGISTRY.get_sample_value("zelda_lease_taken_total", {"lease": "watched"})
    await lease.step()
    assert (before, REGISTRY.get_sample_value("zelda_lease_taken_total", {"lease": "watched"})) == (0, 1)


async def test_renewing_keeps_the_fence() -> None:
    store, clock = MemoryStore(), Clock()
    first, second = Lease(store, "c", "first", TTL_S, clock), Lease(store, "c", "second", TTL_S, clock)
    for _ in range(60):
        await first.step()
        await second.step()
        clock.now += TTL_S / 3
    assert (first.fence, second.fence) == (1, None)
    assert KEPT <= len(await store.list(keys.lease_prefix("c"))) <= KEPT + 2


async def test_holder_without_renewal_stops_long_before_another_starts() -> None:
    store, clock = MemoryStore(), Clock()
    first, second = Lease(store, "c", "first", TTL_S, clock), Lease(store, "c", "second", TTL_S, clock)
    await first.step()
    await second.step()
    clock.now += TTL_S * 2 / 3 + 0.1
    assert first.fence is None
    await second.step()
    assert second.fence is None
    clock.now += TTL_S / 3
    await second.step()
    assert second.fence == 2


async def test_holder_that_slept_finds_itself_replaced() -> None:
    store, clock = MemoryStore(), Clock()
    first, second = Lease(store, "c", "first", TTL_S, clock), Lease(store, "c", "second", TTL_S, clock)
    await first.step()
    for _ in range(5):
        await second.step()
        clock.now += TTL_S / 2
    assert second.fence == 2
    await first.step()
    assert first.fence is None
    await second.step()
    assert second.fence == 2


async def test_released_lease_is_free_immediately_and_the_fence_grows() -> None:
    store, clock = MemoryStore(), Clock()
    first, second = Lease(store, "c", "first", TTL_S, clock), Lease(store, "c", "second", TTL_S, clock)
    await first.step()
    await first.release()
    assert first.fence is None
    await second.step()
    assert second.fence == 3  # taking, releasing and taking again are revisions 1, 2 and 3


async def test_one_of_many_concurrent_takers_wins() -> None:
    store, clock = MemoryStore(), Clock()
    crowd = [Lease(store, "c", f"owner-{number}", TTL_S, clock) for number in range(20)]
    await asyncio.gather(*(lease.step() for lease in crowd))
    assert sum(lease.fence is not None for lease in crowd) == 1


async def test_creation_with_a_lost_answer_counts() -> None:
    store, clock = Forgetful(), Clock()
    lease = Lease(store, "c", "first", TTL_S, clock)
    store.lose = True
    with pytest.raises(Transient):
        await lease.step()
    clock.now += TTL_S + 1
    await lease.step()
    clock.now += TTL_S + 1
    await lease.step()
    assert lease.fence is not None


class Eventful(MemoryStore):
    """A store in which something happens before the next creation, or instead of its answer."""

    before: Callable[[], Awaitable[None]] | None = None
    says_taken = False

    async def create(self, key: str, data: bytes) -> str:
        before, self.before = self.before, None
        if before is not None:
            await before()
        digest = await super().create(key, data)
        if self.says_taken:
            raise AlreadyExists(f"object {key!r} exists")
        return digest


async def test_creation_repeated_by_the_client_counts_immediately() -> None:
    store = Eventful()
    lease = Lease(store, "c", "first", TTL_S, Clock())
    store.says_taken = True
    await lease.step()
    assert lease.fence == 1


async def test_creating_an_outdated_revision_takes_no_lease() -> None:
    store, clock = Eventful(), Clock()
    first, late = Lease(store, "c", "first", TTL_S, clock), Lease(store, "c", "late", TTL_S, clock)
    await first.step()
    await first.release()

    async def others_go_on() -> None:
        for _ in range(2 * KEPT):
            await first.step()

    store.before = others_go_on  # the late one has seen that the lease is free, and sleeps
    await late.step()
    assert (first.fence, late.fence) == (3, None)


class Slow(MemoryStore):
    """A store whose listings wait for `answer` once `held` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.answer, self.held = asyncio.Event(), False

    async def list(self, prefix: str) -> list[ObjectEntry]:
        if self.held:
            await self.answer.wait()
        return await super().list(prefix)

    async def create(self, key: str, data: bytes) -> str:
        self.held = True
        return await super().create(key, data)


async def test_a_renewal_under_way_does_not_keep_a_released_lease() -> None:
    store, clock = Slow(), Clock()
    first, second = Lease(store, "c", "first", TTL_S, clock), Lease(store, "c", "second", TTL_S, clock)
    store.answer.set()
    await first.step()
    store.answer.clear()
    store.held = False
    renewal = asyncio.create_task(first.step())
    await asyncio.sleep(0)  # it has created its revision, and reads whether that is the newest
    release = asyncio.create_task(first.release())
    await asyncio.sleep(0)
    store.answer.set()
    await asyncio.gather(renewal, release)
    await second.step()
    assert (first.fence, second.fence is not None) == (None, True)


async def test_a_released_lease_is_not_taken_again_by_its_own_job() -> None:
    store = MemoryStore()
    lease = Lease(store, "c", "first", 0.03)
    job = asyncio.create_task(lease.run())
    await until(lambda: lease.fence is not None)
    await lease.release()
    await asyncio.wait({job}, timeout=0.2)
    job.cancel()
    other = Lease(store, "c", "other", 60.0)
    await other.step()
    assert other.fence is not None


async def test_lease_time_starts_before_the_request() -> None:
    store, clock = Eventful(), Clock()

    async def slowly() -> None:
        clock.now += TTL_S / 2

    lease = Lease(store, "c", "first", TTL_S, clock)
    store.before = slowly
    await lease.step()
    assert lease.fence == 1
    clock.now += TTL_S / 5
    assert lease.fence is None


async def test_release_leaves_a_lease_that_another_has_taken() -> None:
    store, clock = MemoryStore(), Clock()
    first, second = Lease(store, "c", "first", TTL_S, clock), Lease(store, "c", "second", TTL_S, clock)
    await first.step()
    await second.step()
    clock.now += TTL_S + 1
    await second.step()
    await first.release()
    await second.step()
    assert (first.fence, second.fence) == (None, 2)


async def test_renewal_with_a_lost_answer_keeps_the_lease() -> None:
    store, clock = Forgetful(), Clock()
    lease = Lease(store, "c", "first", TTL_S, clock)
    await lease.step()
    store.lose = True
    with pytest.raises(Transient):
        await lease.step()
    clock.now += TTL_S / 3
    await lease.step()
    clock.now += TTL_S / 2  # more than two thirds since the first step
    assert lease.fence == 1


class Unsteady(MemoryStore):
    """A store that is away on request, or whose listed objects are gone when they are read."""

    away = behind = False

    async def list(self, prefix: str) -> list[ObjectEntry]:
        if self.away:
            raise Transient("the store is away")
        return await super().list(prefix)

    async def get(self, key: str, digest: str | None = None) -> bytes:
        if self.behind:
            raise NotFound(f"no object {key!r}")
        return await super().get(key, digest)


def held() -> float | None:
    return REGISTRY.get_sample_value("zelda_lease_held_ratio", {"lease": "kept"})


async def test_an_outage_of_the_store_is_survived_and_shown() -> None:
    store, clock = Unsteady(), Clock()
    keeping = asyncio.create_task(Lease(store, "kept", "first", 0.01, clock).run())
    await until(lambda: held() == 1)
    store.away = True
    clock.now += 1
    await until(lambda: held() == 0)
    store.away = False
    await until(lambda: held() == 1)
    assert not keeping.done()
    keeping.cancel()


async def test_a_revision_that_was_deleted_before_it_was_read_is_read_later() -> None:
    store, clock = Unsteady(), Clock()
    first, second = Lease(store, "c", "first", TTL_S, clock), Lease(store, "c", "second", TTL_S, clock)
    await first.step()
    store.behind = True
    with pytest.raises(Transient, match="lease 'c' changes faster than it can be read"):
        await second.step()
    store.behind = False
    await first.step()
    await second.step()
    assert (first.fence, second.fence) == (1, None)


@pytest.mark.parametrize("raw", [b"", b'{"owner": "fir'])
async def test_damaged_revision_expires_like_any_other(raw: bytes) -> None:
    store, clock = MemoryStore(), Clock()
    await Lease(store, "c", "first", TTL_S, clock).step()
    await store.put(keys.lease_revision("c", 2), raw)  # the power failed while it was renewed
    await store.put(f"{keys.lease_prefix('c')}notes.txt", b"not ours")
    second = Lease(store, "c", "second", TTL_S, clock)
    await second.step()
    assert second.fence is None
    clock.now += TTL_S + 0.1
    await second.step()
    assert second.fence == 3


class Contest(RuleBasedStateMachine):
    """Three processes with their own clocks, any of which may sleep, fall behind, release or meet a silent store."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()
        self.time = Clock()
        self.leases = [Lease(self.store, "c", f"p{number}", TTL_S, self.time) for number in range(3)]
        self.highest = 0

    @rule(who=st.integers(0, 2))
    def step(self, who: int) -> None:
        asyncio.run(self.leases[who].step())

    @rule(who=st.integers(0, 2))
    def release(self, who: int) -> None:
        if self.leases[who].fence is not None:
            asyncio.run(self.leases[who].release())

    @rule(seconds=st.floats(0.1, 2 * TTL_S))
    def time_passes(self, seconds: float) -> None:
        self.time.now += seconds

    @invariant()
    def at_most_one_acts_and_the_fence_never_falls(self) -> None:
        fences = [lease.fence for lease in self.leases if lease.fence is not None]
        assert len(fences) <= 1
        for fence in fences:
            assert fence >= self.highest
            self.highest = fence


TestContest = Contest.TestCase
TestContest.settings = settings(max_examples=100, stateful_step_count=40)
