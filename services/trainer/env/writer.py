"""The writer process of an env runner: `python -m services.trainer.env.writer FILE`, started by clerk.py.

It makes archives of finished segments and creates them in the store, several at a time. Segments lie in the tray that
FILE is the descriptor of; each has one line of JSON on its standard input, and is answered by one on its standard
output. It ends when its input does. It needs neither emulator nor Gymnasium.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from mmap import mmap
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from services.trainer.env.tray import PICTURE, PICTURE_SIZE, Layout, Tray
from shared.contracts.base import sha256
from shared.contracts.ids import EpisodeId, RunId, SegmentId
from shared.errors import Transient
from shared.game.decoder import Decoder
from shared.game.moment import STILL_SIZE, Album
from shared.game.png import palette_png
from shared.game.rows import Lines
from shared.game.segment import Members, write_segment
from shared.game.table import IMAGE_SIZE
from shared.runtime.settings import StoreSettings
from shared.store import keys
from shared.store.open import open_store
from shared.store.port import AlreadyExists, Store

NICENESS: Final = 10  # where cores are scarce the games come first; the outbox bounds how far we fall behind
AT_ONCE: Final = 8  # archives on their way to the store; a remote store answers slowly but many at a time
TRIES: Final = 5
PAUSE_S: Final = 1.0
LONGEST_HEAD: Final = 1024 * 1024  # bytes


@dataclass(frozen=True)
class Gathered:
    """What the games left of a segment in its place."""

    memory: mmap
    layout: Layout
    tail: Sequence[bytes]  # turns, actions, prefix, start state

    def pictures(self, count: int) -> Iterator[NDArray[np.uint32]]:
        """The key frames, packed RGBA."""
        for shot in range(count):
            pixels = np.frombuffer(self.memory, np.uint32, PICTURE_SIZE // 4, shot * PICTURE_SIZE)
            yield pixels.reshape(PICTURE)

    def ram_hash(self, end: bool) -> str:
        """SHA-256 of all RAM at the start or at the end, as `Emulator.ram_hash` gives it."""
        begin = self.layout.ram + end * IMAGE_SIZE
        return sha256(self.memory[begin : begin + IMAGE_SIZE])

    def images(self, moments: int) -> Iterator[bytes]:
        """The moments' images again, as far as decoding needs them."""
        turns = set(np.frombuffer(self.tail[0], np.uint32).tolist())
        album, still, begin = Album(), self.layout.stills, self.layout.moments
        for _ in range(moments):
            if begin in turns:
                album.turn(self.memory[still : still + STILL_SIZE])
                still += STILL_SIZE
            end = begin + album.size
            yield album.image(self.memory[begin:end])
            begin = end


def archive(facts: dict[str, Any], gathered: Gathered) -> bytes:
    """The archive of one segment."""
    _, actions, prefix, packed_start = gathered.tail
    key_frames, capabilities = facts["key_frames"], frozenset(facts.pop("capabilities"))
    facts |= {"ram_start": gathered.ram_hash(end=False), "ram_end": gathered.ram_hash(end=True)}
    moments = len(actions) + 1
    members = Members(
        lines=_lines(gathered.images(moments), actions, capabilities, int(facts["first_step"])),
        observations=gathered.layout.features(gathered.memory, moments),
        actions=np.frombuffer(actions, np.uint8),
        prefix=np.frombuffer(prefix, np.uint8),
        packed_start=packed_start,
        frames=dict(zip(key_frames, map(palette_png, gathered.pictures(len(key_frames))), strict=True)),
    )
    return write_segment(facts, members)


def _lines(images: Iterator[bytes], actions: bytes, capabilities: frozenset[str], first_step: int) -> list[str]:
    """states.jsonl: the state after each action. The first image is the moment before the first action."""
    decoder, lines = Decoder(capabilities), Lines()
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
            return await _created(store, key, data)
        except Transient:
            await asyncio.sleep(PAUSE_S * 2**attempt)
    return None


async def _created(store: Store, key: str, data: bytes) -> str:
    try:
        return await store.create(key, data)
    except AlreadyExists:
        return sha256(await store.get(key))


async def serve(pipe: IO[Any], file: int) -> None:
    """Store the segments whose heads come through the pipe; at most `AT_ONCE` of them are in work."""
    heads = asyncio.StreamReader(limit=LONGEST_HEAD)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(heads), pipe)
    first = await heads.readline()
    if not first:
        return
    order = json.loads(first)
    store = open_store(StoreSettings.model_validate(order["store"]))
    tray = Tray(Layout(order["steps"]), file)
    free = asyncio.Semaphore(AT_ONCE)
    async with asyncio.TaskGroup() as work:
        while True:
            await free.acquire()
            head = await heads.readline()
            if not head:
                return
            work.create_task(_write(store, json.loads(head), tray, free))


async def _write(store: Store, facts: dict[str, Any], tray: Tray, free: asyncio.Semaphore) -> None:
    key, place = key_of(facts), facts.pop("place")
    try:
        gathered = Gathered(tray.open(place), tray.layout, tray.tail(place, facts.pop("sizes")))
        digest = await put(store, key, archive(facts, gathered))  # no thread: several would only share one core
    finally:
        free.release()
    answer = {"segment": facts["segment"], "episode": facts["episode"], "key": key, "digest": digest, "place": place}
    with suppress(BrokenPipeError):  # the games have ended without waiting; the end of our input ends us, too
        os.write(sys.stdout.fileno(), json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    os.nice(NICENESS)
    asyncio.run(serve(sys.stdin, int(sys.argv[1])))
