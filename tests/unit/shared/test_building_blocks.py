"""Small building blocks of all services: bounded cache, in-progress guard, log once, create or read."""

import pytest

from shared.contracts.base import sha256
from shared.contracts.ids import RunId
from shared.process.bounded_cache import BoundedCache
from shared.process.in_progress import InProgress
from shared.state.epochs import first_unfinished_epoch
from shared.store import keys
from shared.store.create import create_if_absent, create_or_read
from shared.store.memory import MemoryStore
from shared.telemetry.log_once import LogOnce


def test_bounded_cache_drops_the_least_recently_used_key() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("old", 1)
    cache.put("new", 2)
    assert cache.get("old") == 1  # which makes it the most recent one
    cache.put("third", 3)
    assert list(cache) == ["old", "third"]
    assert cache.get("new") is None


def test_bounded_cache_makes_a_missing_value_once() -> None:
    cache: BoundedCache[str, list[int]] = BoundedCache(8)
    cache.get_or_make("run", list).append(1)
    cache.get_or_make("run", list).append(2)
    assert cache.get("run") == [1, 2]
    assert (cache.pop("run"), cache.pop("run"), len(cache)) == ([1, 2], None, 0)
    with pytest.raises(ValueError, match="room for at least one"):
        BoundedCache(0)


def test_second_claim_of_a_key_in_progress_is_refused() -> None:
    guard: InProgress[str] = InProgress()
    with guard.claim("segment") as first, guard.claim("segment") as second, guard.claim("other") as other:
        assert (first, second, other) == (True, False, True)
        assert "segment" in guard
    assert "segment" not in guard


def test_refused_claim_leaves_the_first_one_in_place() -> None:
    guard: InProgress[str] = InProgress()
    with guard.claim("segment"):
        with guard.claim("segment"):
            pass
        assert "segment" in guard


def test_claim_ends_with_an_error() -> None:
    guard: InProgress[str] = InProgress()
    with pytest.raises(RuntimeError), guard.claim("segment"):
        raise RuntimeError
    assert "segment" not in guard


def test_problem_is_logged_once_until_it_changes_or_ends() -> None:
    lines: list[tuple[str, dict[str, str]]] = []
    problems: LogOnce[str] = LogOnce(lambda event, **fields: lines.append((event, fields)), "run skipped")
    assert problems.report("demo", ValueError("damaged"), run="demo")
    assert not problems.report("demo", ValueError("damaged"), run="demo")
    assert problems.report("demo", ValueError("gone"), run="demo")
    problems.clear("demo")
    assert problems.report("demo", ValueError("gone"), run="demo")
    assert [fields["error"] for _, fields in lines] == ["damaged", "gone", "gone"]
    assert lines[0] == ("run skipped", {"run": "demo", "error": "damaged"})
    problems.keep_only({"another"})
    assert len(problems) == 0


def test_a_problem_that_differs_only_in_durations_is_the_same() -> None:
    lines: list[str] = []
    problems: LogOnce[str] = LogOnce(lambda event, **fields: lines.append(fields["error"]), "store unavailable")
    assert problems.report("demo", "no answer in 270.040271ms, waited 10 s")
    assert not problems.report("demo", "no answer in 3.5ms, waited 9 s")
    assert problems.report("demo", "refused after 3.5ms")
    assert lines == ["no answer in 270.040271ms, waited 10 s", "refused after 3.5ms"]


async def test_create_or_read_returns_the_first_commit() -> None:
    store, key = MemoryStore(), keys.run_summary(RunId("demo"))
    first = await create_or_read(store, key, b"first")
    second = await create_or_read(store, key, b"second")
    assert first == (b"first", sha256(b"first"), True)
    assert second == (b"first", sha256(b"first"), False)
    assert not await create_if_absent(store, key, b"third")
    assert await create_if_absent(store, keys.progress(RunId("demo")), b"new")


def test_first_unfinished_epoch_is_the_first_gap() -> None:
    run = RunId("demo")
    assert first_unfinished_epoch(run, set()) == 0
    assert first_unfinished_epoch(run, {keys.epoch_finished(run, epoch) for epoch in (0, 1, 3)}) == 2
