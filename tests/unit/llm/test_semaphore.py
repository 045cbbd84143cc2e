"""The queue before a route: order of arrival, a limit that changes, and no leaked slot."""

import asyncio

import pytest

from shared.llm.semaphore import AcquireTimeout, AdaptiveSemaphore


async def test_semaphore_admits_in_order_while_the_limit_changes() -> None:
    limit, order = 1, list[int]()
    semaphore, release = AdaptiveSemaphore(lambda: limit), asyncio.Event()

    async def call(number: int) -> None:
        async with semaphore.slot(5):
            order.append(number)
            await release.wait()

    calls = [asyncio.create_task(call(number)) for number in range(5)]
    await asyncio.sleep(0)
    assert order == [0]
    limit = 3
    release.set()
    await asyncio.gather(*calls)
    assert order == [0, 1, 2, 3, 4]
    assert semaphore.in_flight == 0


async def test_call_waits_in_a_moving_queue_and_leaves_a_stuck_one() -> None:
    semaphore = AdaptiveSemaphore(lambda: 1)
    async with semaphore.slot(1):
        waiting = asyncio.create_task(semaphore._acquire(0.2))
        for _ in range(4):
            await asyncio.sleep(0.1)
            semaphore.record_progress()
        assert not waiting.done(), "calls were answered all the time"
        with pytest.raises(AcquireTimeout):
            await waiting
    assert semaphore.in_flight == 0


async def test_timed_out_or_cancelled_call_leaks_no_slot() -> None:
    semaphore = AdaptiveSemaphore(lambda: 1)
    async with semaphore.slot(1):
        with pytest.raises(AcquireTimeout, match="no free slot within"):
            async with semaphore.slot(0.05):
                pytest.fail("there was no slot")
        waiting = asyncio.create_task(semaphore._acquire(5))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    async with semaphore.slot(0.05):
        assert semaphore.in_flight == 1
    assert semaphore.in_flight == 0
