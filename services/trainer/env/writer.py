"""The writer process of an env runner: `python -m services.trainer.env.writer FILE`, started by clerk.py.

It makes archives of finished segments and creates them in the store, several at a time. Segments lie in the tray that
FILE is the descriptor of; each has one line of JSON on its standard input, and is answered by one on its standard
output. It ends when its input does. It needs neither emulator nor Gymnasium.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from typing import IO, Any, Final

import numpy as np

from services.trainer.env.buffers import PICTURE_SIZE
from services.trainer.env.tray import Tray
from shared.contracts.base import sha256
from shared.contracts.ids import EpisodeId, RunId, SegmentId
from shared.errors import Transient
from shared.game.decoder import Decoder
from shared.game.layout import SIZE
from shared.game.moment import OBJECTS_SIZE, STILL_SIZE, Album
from shared.game.png import palette_png
from shared.game.rows import line
from shared.game.segment import Members, write_segment
from shared.runtime.settings import StoreSettings
from shared.store import keys
from shared.store.open import open_store
from shared.store.port import AlreadyExists, Store

NICENESS: Final = 10  # where cores are scarce the games come first; the outbox bounds how far we fall behind
AT_ONCE: Final = 8  # archives on their way to the store; a remote store answers slowly but many at a time
TRIES: Final = 5
PAUSE_S: Final = 1.0
PICTURE: Final = (144, 160)


def archive(facts: dict[str, Any], parts: list[bytes]) -> bytes:
    """The archive of one parcel (see outbox.py)."""
    objects, counters, turns, stills, features, pictures, actions, prefix, packed_start = parts
    frames = {
        step: palette_png(np.frombuffer(pictures, np.uint32, PICTURE_SIZE // 4, place * PICTURE_SIZE).reshape(PICTURE))
        for place, step in enumerate(facts["key_frames"])
    }
    capabilities = frozenset(facts.pop("capabilities"))
    images = _images(objects, counters, stills, np.frombuffer(turns, np.uint16).tolist())
    members = Members(
        lines=_lines(images, actions, capabilities, int(facts["first_step"])),
        observations=np.frombuffer(features, "<f4").reshape(-1, SIZE),
        actions=np.frombuffer(actions, np.uint8),
        prefix=np.frombuffer(prefix, np.uint8),
        packed_start=packed_start,
        frames=frames,
    )
    return write_segment(facts, members)


def _images(objects: bytes, counters: bytes, stills: bytes, turns: list[int]) -> Iterator[bytes]:
    """The moments' images again, as far as decoding needs them."""
    album, turned = Album(), 0
    for moment, counter in enumerate(counters):
        if turned < len(turns) and turns[turned] == moment:
            album.turn(stills[turned * STILL_SIZE : (turned + 1) * STILL_SIZE])
            turned += 1
        yield album.image(objects[moment * OBJECTS_SIZE : (moment + 1) * OBJECTS_SIZE], counter)


def _lines(images: Iterator[bytes], actions: bytes, capabilities: frozenset[str], first_step: int) -> list[str]:
    """states.jsonl: the state after each action. The first image is the moment before the first action."""
    decoder = Decoder(capabilities)
    decoder.begin(next(images))
    return [
        line(decoder.decode(image), first_step + step, action)
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


async def serve(pipe: IO[bytes], tray: Tray) -> None:
    """Read heads until the pipe ends; at most `AT_ONCE` segments are in work."""
    loop = asyncio.get_running_loop()
    first = await loop.run_in_executor(None, pipe.readline)
    if not first:
        return
    store = open_store(StoreSettings.model_validate(json.loads(first)["store"]))
    free = asyncio.Semaphore(AT_ONCE)
    async with asyncio.TaskGroup() as work:
        while True:
            await free.acquire()
            line = await loop.run_in_executor(None, pipe.readline)
            if not line:
                return
            work.create_task(_write(store, json.loads(line), tray, free))


async def _write(store: Store, facts: dict[str, Any], tray: Tray, free: asyncio.Semaphore) -> None:
    key, place = key_of(facts), facts.pop("place")
    try:
        parts = tray.take(place, facts.pop("sizes"))
        digest = await put(store, key, await asyncio.to_thread(archive, facts, parts))
    finally:
        free.release()
    answer = {"segment": facts["segment"], "episode": facts["episode"], "key": key, "digest": digest, "place": place}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    os.nice(NICENESS)
    asyncio.run(serve(sys.stdin.buffer, Tray(int(sys.argv[1]))))
