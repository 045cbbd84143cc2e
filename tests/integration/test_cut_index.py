"""A full disk cuts the store's index within an entry: the next start of the real server makes all objects readable."""

import shutil
from pathlib import Path

import pytest

from cli.stack.connections import local_store
from cli.stack.local_stack import LocalStack, StackOptions, build_stack, provision
from cli.stack.ports import PortAllocator
from cli.stack.process import StackError
from cli.stack.servers import INDEX_ENTRY, rebuild_cut_indexes
from shared.errors import Transient
from shared.store.port import Store
from tests.servers import when_back

OBJECTS = {f"models/runs/one/part/{number}.json": bytes([number]) * 500 for number in range(20)}


async def cut_off(system: LocalStack) -> list[Path]:
    """Fill the store, kill it, and leave a part of an entry at the end of each index, which it returns."""
    server = system.process("store")
    await server.start()
    await provision("store", system.settings)
    store = local_store(system.settings)
    for key, data in OBJECTS.items():
        await store.put(key, data)
    await server.kill()
    indexes = sorted(system.layout.store.glob("*.idx"))
    for index in indexes:
        with index.open("ab") as file:
            file.write(bytes(range(5)))
    return indexes


async def objects_of(store: Store) -> dict[str, bytes]:
    return {key: await store.get(key) for key in OBJECTS}


async def test_a_cut_index_is_rebuilt_before_the_store_starts(tmp_path: Path) -> None:
    messages: list[str] = []
    system = build_stack(StackOptions(tmp_path), messages.append, PortAllocator())
    indexes = await cut_off(system)
    await system.process("store").start()
    try:
        store = local_store(system.settings)
        # SeaweedFS calls itself healthy before its master knows the volumes; reads fail until then.
        assert await when_back(lambda: objects_of(store)) == OBJECTS
    finally:
        await system.process("store").kill()
    names = ", ".join(index.name for index in indexes)
    assert messages == [f"store: rebuilt {names}, which a full disk had cut off."]
    assert all(index.stat().st_size % INDEX_ENTRY == 0 for index in indexes)


async def test_the_server_alone_reads_no_object_of_a_cut_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Why the index is rebuilt: once a newer server mends it itself, this test fails, and the rebuilding can go."""
    monkeypatch.setattr("cli.stack.servers.INDEX_ENTRY", 1)
    system = build_stack(StackOptions(tmp_path), print, PortAllocator())
    await cut_off(system)
    await system.process("store").start()
    try:
        with pytest.raises(Transient, match="500"):
            await local_store(system.settings).get(next(iter(OBJECTS)))
    finally:
        await system.process("store").kill()


def test_an_index_that_is_not_rebuilt_is_named_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = tmp_path / "episodes_7.idx"
    cut.write_bytes(bytes(INDEX_ENTRY + 5))
    monkeypatch.setattr("cli.stack.servers.find_program", lambda name: shutil.which("true"))
    with pytest.raises(StackError, match=r"episodes_7\.idx, .* cannot be rebuilt: weed fix wrote no index"):
        rebuild_cut_indexes(tmp_path)
    assert len(cut.read_bytes()) == INDEX_ENTRY + 5
