"""Compresses data for the cartridge: pictures by repetition (unpacked by engine/video.c), texts and rooms by pairs
(engine/text.c, engine/rooms.c). Pure functions on bytes.
"""

from collections import Counter
from functools import lru_cache
from itertools import pairwise

MIN_LENGTH = 3
MAX_LENGTH = 18
MAX_DISTANCE = 4095
MAX_TRIES = 48
FIRST_LETTER_PAIR = 128
FIRST_TILE_PAIR = 96
MIN_COUNT = 4
"""A rarer pair costs more in the table than it saves."""
MAX_DEPTH = 14
"""The engine keeps the second halves of nested pairs on a stack of 16."""


def _longest(data: bytes, at: int, positions: list[int]) -> tuple[int, int]:
    """Longest earlier match of the bytes at `at`: (length, distance)."""
    best = (0, 0)
    limit = min(MAX_LENGTH, len(data) - at)
    for position in reversed(positions[-MAX_TRIES:]):
        if at - position > MAX_DISTANCE:
            break
        length = MIN_LENGTH
        while length < limit and data[position + length] == data[at + length]:
            length += 1
        if length > best[0]:
            best = (length, at - position)
    return best if best[0] <= limit else (0, 0)


def pack_bytes(data: bytes) -> bytes:
    """Pack by references to earlier bytes. A reference with distance 0 ends the data."""
    seen: dict[bytes, list[int]] = {}
    pieces: list[tuple[bool, bytes]] = []
    at = 0
    while at < len(data):
        length, distance = _longest(data, at, seen.get(data[at : at + MIN_LENGTH], []))
        step = length if length >= MIN_LENGTH else 1
        if step > 1:
            pieces.append((False, bytes([distance & 255, distance >> 8 | (length - MIN_LENGTH) << 4])))
        else:
            pieces.append((True, data[at : at + 1]))
        for position in range(at, min(at + step, len(data) - MIN_LENGTH + 1)):
            seen.setdefault(data[position : position + MIN_LENGTH], []).append(position)
        at += step
    pieces.append((False, b"\0\0"))
    out = bytearray()
    for first in range(0, len(pieces), 8):
        group = pieces[first : first + 8]
        out.append(sum(plain << bit for bit, (plain, _) in enumerate(group)))
        out += b"".join(piece for _, piece in group)
    return bytes(out)


@lru_cache(maxsize=16)
def pack_pairs(lines: tuple[bytes, ...], first: int) -> tuple[tuple[bytes, ...], bytes]:
    """Replace frequent byte pairs by numbers from `first` on. Returns the packed lines and the pair table."""
    work = [list(line) for line in lines]
    pairs = bytearray()
    depth = dict.fromkeys(range(256), 0)
    for new in range(first, 256):
        counts = Counter(pair for line in work for pair in pairwise(line))
        usable = [(count, pair) for pair, count in counts.items() if max(depth[pair[0]], depth[pair[1]]) < MAX_DEPTH]
        count, pair = max(usable, default=(0, (0, 0)))
        if count < MIN_COUNT:
            break
        depth[new] = 1 + max(depth[pair[0]], depth[pair[1]])
        pairs += bytes(pair)
        work = [_merge(line, pair, new) for line in work]
    return tuple(bytes(line) for line in work), bytes(pairs)


def _merge(line: list[int], pair: tuple[int, int], new: int) -> list[int]:
    out: list[int] = []
    at = 0
    while at < len(line):
        if at + 1 < len(line) and (line[at], line[at + 1]) == pair:
            out.append(new)
            at += 2
        else:
            out.append(line[at])
            at += 1
    return out
