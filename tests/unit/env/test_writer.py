"""What the writer does with a store that errs: it tries again, and what is there already counts as written.

And with one that is quick or slow: it never runs beside a quick one, and does not wait for a slow one.
"""

import asyncio
from collections.abc import Callable

import pytest

from services.trainer.env import writer
from shared.contracts.base import sha256
from shared.errors import Transient
from shared.store.memory import MemoryStore

KEY = "episodes/episodes/demo/epoch_0/e0/s0.zip"


class Flaky(MemoryStore):
    """Fails the first `times` calls of each kind; a failed `create` has written nevertheless: its answer was lost."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = {"create": times, "get": times}

    def _fail(self, call: str) -> None:
        if self.left[call]:
            self.left[call] -= 1
            raise Transient(f"the store lost a {call}")

    async def create(self, key: str, data: bytes) -> str:
        try:
            return await super().create(key, data)
        finally:
            self._fail("create")

    async def get(self, key: str, digest: str | None = None) -> bytes:
        self._fail("get")
        return await super().get(key, digest)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "PAUSE_S", 0.0)


async def test_a_lost_answer_and_an_error_while_it_looks_again_cost_nothing() -> None:
    store = Flaky(times=2)
    assert await writer.put(store, KEY, b"segment") == sha256(b"segment")
    assert await MemoryStore.get(store, KEY) == b"segment"


async def test_a_store_that_stays_away_is_given_up() -> None:
    assert await writer.put(Flaky(times=100), KEY, b"segment") is None


class Slow(MemoryStore):
    """Takes its time for each object, and notes what happens to `log`."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds, self.log = seconds, list[str]()

    async def create(self, key: str, data: bytes) -> str:
        await asyncio.sleep(self.seconds)
        self.log.append(f"stored {data.decode()}")
        return await super().create(key, data)

    def making(self, number: int) -> Callable[[], bytes]:
        def make() -> bytes:
            self.log.append(f"made {number}")
            return str(number).encode()

        return make

    async def three(self) -> list[str]:
        turn = asyncio.Lock()
        keys = [KEY.replace("s0", f"s{number}") for number in range(3)]
        await asyncio.gather(*(writer.in_turn(self, key, self.making(n), turn) for n, key in enumerate(keys)))
        return self.log


async def test_an_archive_is_made_when_a_quick_store_has_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "TURN_S", 30.0)

    assert await Slow(0.001).three() == ["made 0", "stored 0", "made 1", "stored 1", "made 2", "stored 2"]


async def test_several_archives_are_on_their_way_to_a_slow_store() -> None:
    assert (await Slow(0.5).three())[:3] == ["made 0", "made 1", "made 2"]
