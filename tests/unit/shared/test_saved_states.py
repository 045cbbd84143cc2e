"""A saved state's name means one state, whose bytes are checked when they are read."""

from datetime import UTC, datetime

import pytest

from shared.contracts.base import sha256
from shared.contracts.epoch import SavedState
from shared.contracts.ids import Digest, StateName
from shared.errors import DigestMismatch
from shared.state.saved_states import SavedStates, StateNameTaken, UnknownState
from shared.store import keys
from shared.store.memory import MemoryStore

CAVE, CONTENT = StateName("cave"), b"a compressed state"


def document(name: StateName = CAVE, content: bytes = CONTENT) -> SavedState:
    digest = Digest(sha256(content))
    return SavedState(
        name=name, key=keys.saved_state_content(digest), digest=digest, game="bramble", world="garden",
        difficulty="normal", seed=0, rom=Digest("a" * 64), emulator="pyboy", place="0:00", milestones=0,
        source="a test", created=datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip


async def test_a_state_that_was_changed_in_the_store_is_refused() -> None:
    store = MemoryStore()
    states = SavedStates(store)
    await states.create(document(), CONTENT)
    assert await states.content(await states.read(CAVE)) == CONTENT
    await store.put(document().key, b"another state")
    with pytest.raises(DigestMismatch, match="changed or damaged"):
        await states.content(document())


async def test_a_name_that_is_in_use_keeps_its_state() -> None:
    states = SavedStates(MemoryStore())
    await states.create(document(), CONTENT)
    with pytest.raises(StateNameTaken, match="the saved state cave exists"):
        await states.create(document(content=b"another state"), b"another state")
    assert await states.content(await states.read(CAVE)) == CONTENT


async def test_an_unknown_name_is_answered_with_the_names_that_exist() -> None:
    states = SavedStates(MemoryStore())
    with pytest.raises(UnknownState, match="no saved state is named lake: save one with `zelda states save`"):
        await states.read(StateName("lake"))
    for name in ("cave", "bridge"):
        await states.create(document(StateName(name)), CONTENT)
    with pytest.raises(UnknownState, match="no saved state is named lake: choose from bridge, cave"):
        await states.read(StateName("lake"))
