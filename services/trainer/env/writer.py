"""The writer process of an env runner: `python -m services.trainer.env.writer FILE [--idle]`, started by clerk.py.

It makes archives of finished segments and creates them in the store, several at a time. Segments lie in the tray that
FILE is the descriptor of; each has one line of JSON on its standard input, and is answered by one on its standard
output. It ends when its input does. It needs neither emulator nor Gymnasium.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from mmap import mmap
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from services.trainer.env.clerk import IDLE
from services.trainer.env.tray import PICTURE, PICTURE_SIZE, Tray
from shared.config.settings import StoreSettings
from shared.contracts.base import sha256
from shared.contracts.ids import EpisodeId, RunId, SegmentId
from shared.errors import Transient
from shared.game.decoding.decoder import Decoder
from shared.game.decoding.image_parts import STATIC_SIZE, VOLATILE_SIZE, RamImageRebuilder
from shared.game.observation.layout import SIZE
from shared.game.recording.png import palette_png
from shared.game.recording.segment import Members, write_segment
from shared.game.recording.state_rows import StateRowWriter
from shared.store import keys
from shared.store.create import create_or_read
from shared.store.open import open_store
from shared.store.port import Store

NICENESS: Final = 10  # where cores are scarce the games come first; the outbox bounds how far we fall behind
AT_ONCE: Final = 8  # archives on their way to the store; a remote store answers slowly but many at a time
TRIES: Final = 5
PAUSE_S: Final = 1.0
TURN_S: Final = 0.003  # a local store needs less; a remote one has taken the bytes by then
LONGEST_HEAD: Final = 1024 * 1024  # bytes


@dataclass(frozen=True)
class Gathered:
    """What the games left of a segment in its place: its pictures, then `Finished.parts` in their order."""

    pictures: mmap
    ram_start: bytes
    ram_end: bytes
    moved: bytes  # see draft.py
    busy: bytes
    quiet: bytes
    turns: bytes
    changes: bytes
    seen: bytes
    actions: bytes
    prefix: bytes
    packed_start: bytes

    def key_frames(self, count: int) -> Iterator[NDArray[np.uint32]]:
        """The pictures, packed RGBA."""
        for shot in range(count):
            pixels = np.frombuffer(self.pictures, np.uint32, PICTURE_SIZE // 4, shot * PICTURE_SIZE)
            yield pixels.reshape(PICTURE)

    def images(self) -> Iterator[bytes]:
        """The moments' images again, as far as decoding needs them."""
        turns, busy = _places(self.turns), BytesIO(self.busy)
        changes, quiet = _places(self.changes), BytesIO(self.quiet)
        rebuilder, begin = RamImageRebuilder(), 0
        while begin < len(self.moved):
            if begin in turns:
                rebuilder.set_volatile(busy.read(VOLATILE_SIZE))
            if begin in changes:
                rebuilder.set_static(quiet.read(STATIC_SIZE))
            end = begin + rebuilder.size
            yield rebuilder.image(self.moved[begin:end])
            begin = end


def _places(numbers: bytes) -> frozenset[int]:
    return frozenset(np.frombuffer(numbers, np.uint32).tolist())


def archive(facts: dict[str, Any], gathered: Gathered) -> bytes:
    """The archive of one segment."""
    key_frames, capabilities = facts["key_frames"], frozenset(facts.pop("capabilities"))
    facts |= {"ram_start": sha256(gathered.ram_start), "ram_end": sha256(gathered.ram_end)}
    members = Members(
        lines=_lines(gathered.images(), gathered.actions, capabilities, int(facts["first_step"])),
        observations=np.frombuffer(gathered.seen, np.float32).reshape(-1, SIZE),
        actions=np.frombuffer(gathered.actions, np.uint8),
        prefix=np.frombuffer(gathered.prefix, np.uint8),
        packed_start=gathered.packed_start,
        frames=dict(zip(key_frames, map(palette_png, gathered.key_frames(len(key_frames))), strict=True)),
    )
    return write_segment(facts, members)


def _lines(images: Iterator[bytes], actions: bytes, capabilities: frozenset[str], first_step: int) -> list[str]:
    """states.jsonl: the state after each action. The first image is the moment before the first action."""
    decoder, lines = Decoder(capabilities), StateRowWriter()
    decoder.begin(next(images))
    return [
        lines.line(decoder.decode(image), first_step + step, action)
        for step, (image, action) in enumerate(zip(images, actions, strict=True), start=1)
    ]


def key_of(facts: dict[str, Any]) -> str:
    """Where the archive of these facts belongs."""
    return keys.segment(
        RunId(facts["run"]), int(facts["epoch"]), EpisodeId(facts["episode"]), SegmentId(facts["segment"])
    )


async def put(store: Store, key: str, data: bytes) -> str | None:
    """Create the object; its digest, or None when the store stayed away. What exists already counts as written."""
    for attempt in range(TRIES):
        try:
            return (await create_or_read(store, key, data)).digest
        except Transient:
            await asyncio.sleep(PAUSE_S * 2**attempt)
    return None


async def in_turn(store: Store, key: str, make: Callable[[], bytes], turn: asyncio.Lock) -> str | None:
    """As `put`, of what `make` returns; who comes next makes theirs when this one is stored, or after `TURN_S`.

    Stores have threads of their own. Two threads that want to run at once take a core on which a game is played.
    """
    async with turn:
        storing = asyncio.create_task(put(store, key, make()))
        await asyncio.wait({storing}, timeout=TURN_S)
    return await storing


async def serve(pipe: IO[Any], file: int) -> None:
    """Store the segments whose heads come through the pipe; at most `AT_ONCE` of them are in work."""
    heads = asyncio.StreamReader(limit=LONGEST_HEAD)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(heads), pipe)
    first = await heads.readline()
    if not first:
        return
    order = json.loads(first)
    store = open_store(StoreSettings.model_validate(order["store"]))
    tray = Tray(file)
    free, turn = asyncio.Semaphore(AT_ONCE), asyncio.Lock()
    async with asyncio.TaskGroup() as work:
        while True:
            await free.acquire()
            head = await heads.readline()
            if not head:
                return
            work.create_task(_write(store, json.loads(head), tray, free, turn))


async def _write(store: Store, facts: dict[str, Any], tray: Tray, free: asyncio.Semaphore, turn: asyncio.Lock) -> None:
    key, place, sizes = key_of(facts), facts.pop("place"), facts.pop("sizes")

    def made() -> bytes:
        return archive(facts, Gathered(tray.open(place), *tray.tail(place, sizes)))

    try:
        digest = await in_turn(store, key, made, turn)
    finally:
        free.release()
    answer = {"segment": facts["segment"], "episode": facts["episode"], "key": key, "digest": digest, "place": place}
    with suppress(BrokenPipeError):  # the games have ended without waiting; the end of our input ends us, too
        os.write(sys.stdout.fileno(), json.dumps(answer).encode() + b"\n")


def give_way(idle: bool) -> None:
    """Let the games come first; if `idle`, run only when a core has nothing else to do."""
    os.nice(NICENESS)
    if idle:
        with suppress(OSError):  # a sandbox that forbids it: then by niceness alone
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


if __name__ == "__main__":
    give_way(IDLE in sys.argv[2:])
    asyncio.run(serve(sys.stdin, int(sys.argv[1])))
