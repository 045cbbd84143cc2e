"""Dead letters for operators: lists them, and replays those that the coordinator may publish.

The coordinator's rights on the bus stay small: it replays only its own events and those that it republishes.
`zelda dlq` replays every kind with the rights of the provisioning job.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

from shared.bus.open import open_dead_letters
from shared.bus.port import Bus, DeadLetter, UnknownDeadLetter
from shared.bus.subjects import ROOT
from shared.bus.topology import EXPORTER_SEGMENTS, ROLES
from shared.contracts.envelope import parse
from shared.contracts.events import ExportRequested
from shared.contracts.ids import RunId
from shared.errors import ContractError, ZeldaError
from shared.process.bounded_cache import BoundedCache
from shared.store import keys
from shared.store.port import NotFound

REPLAYABLE: Final = frozenset(event.NAME for event in ROLES["coordinator"].publishes)
FRESH_S: Final = 5.0  # each letter is one request to the bus, and several pages ask for the same list
MAX_LISTED: Final = 200
REMEMBERED: Final = 10_000  # failed exports; beyond them, those of which no page asks are asked for again


class ReplayRefused(ZeldaError):
    """The coordinator may not publish the event again. The message names the command that may."""


class DeadLetterService:
    """The dead letters of one bus. A list is at most `FRESH_S` old; a replay makes the next one new."""

    def __init__(self, bus: Bus, clock: Callable[[], float] = time.monotonic) -> None:
        self._bus, self._clock = bus, clock
        self._listed: tuple[float, Sequence[DeadLetter]] | None = None
        self._exports = _FailedExports(bus)

    async def list(self) -> Sequence[DeadLetter]:
        """The oldest `MAX_LISTED` dead letters."""
        now = self._clock()
        if self._listed is None or now - self._listed[0] > FRESH_S:
            self._listed = now, await open_dead_letters(self._bus).list(MAX_LISTED)
        return self._listed[1]

    async def require_no_failed_export(self, place: keys.SegmentPlace) -> None:
        """Raise NotFound, with the exporter's reason, if it gave up a requested export of this segment."""
        letter = await self._exports.find(place)
        if letter is not None:
            reason = letter.reason.rstrip(".")
            raise NotFound(
                f"the export of segment {place.segment} failed ({reason}): remove the cause, then replay "
                f"dead letter {letter.number} with `zelda dlq replay {letter.number}`"
            )

    async def replay(self, number: int) -> None:
        """Publish the event again and remove its dead letter."""
        letters = open_dead_letters(self._bus)
        letter = await letters.get(number)
        if not is_replayable(letter):
            raise ReplayRefused(
                f"The coordinator cannot replay dead letter {number}: use `zelda dlq replay {number}` "
                f"or `zelda dlq drop {number}`."
            )
        await letters.replay(number)
        self._listed = None


class _FailedExports:
    """The requested exports that the exporter gave up. Each dead letter is read once: they may be many."""

    def __init__(self, bus: Bus) -> None:
        self._bus, self._read_to, self._reading = bus, 0, asyncio.Lock()
        self._numbers: BoundedCache[keys.SegmentPlace, int] = BoundedCache(REMEMBERED)  # of the newest letter

    async def find(self, place: keys.SegmentPlace) -> DeadLetter | None:
        """The dead letter of a segment's export; None without one, and after it was replayed or dropped."""
        async with self._reading:
            await self._read_new()
        number = self._numbers.get(place)
        if number is None:
            return None
        try:
            return await open_dead_letters(self._bus).get(number)
        except UnknownDeadLetter:  # replayed or dropped
            self._numbers.pop(place)
            return None

    async def _read_new(self) -> None:
        letters = open_dead_letters(self._bus)
        while found := await letters.list(MAX_LISTED, after=self._read_to, consumer=EXPORTER_SEGMENTS.name):
            for letter in found:
                self._read_to = letter.number
                place = _place_of(letter)
                if event_of(letter) == ExportRequested.NAME and place is not None and run_of(letter) == place.run:
                    self._numbers.put(place, letter.number)


def is_replayable(letter: DeadLetter) -> bool:
    """Whether the coordinator may publish the event of this letter."""
    return event_of(letter) in REPLAYABLE


def event_of(letter: DeadLetter) -> str | None:
    """The name of the letter's event, such as `segment.ready`; None for a notice of the server itself."""
    run, _, name = letter.subject.removeprefix(f"{ROOT}.").partition(".")
    return name if run and name and letter.subject.startswith(f"{ROOT}.") else None


def _place_of(letter: DeadLetter) -> keys.SegmentPlace | None:
    """The segment that the letter's event is about; None if it names none."""
    try:
        return keys.segment_place(parse(letter.raw).data.key)
    except ContractError:  # any client of the bus can choose the bytes
        return None


def run_of(letter: DeadLetter) -> RunId | None:
    """The run that the letter's event belongs to."""
    if event_of(letter) is None:
        return None
    try:
        return RunId(letter.subject.removeprefix(f"{ROOT}.").partition(".")[0])
    except ValueError:  # any client of the bus can choose a subject
        return None
