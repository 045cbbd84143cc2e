"""What may happen to a running ring at random moments. Each torment tells afterwards what it did and saw."""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from cli.stack.services import SERVICES
from shared.store import keys
from tests.faults.stage import RUN, Stage
from tests.faults.tiny import memory_mb
from tests.faults.wire import Wire

KILLS: Final = 15
PAUSE_S: Final = (0.5, 4.0)
ALL_AT_ONCE: Final = 3  # times
AWAY_S: Final = {"bus": 300.0, "store": 60.0}
NOTICED_S: Final = 5.0  # by then services know that a server is away

Wires = dict[str, Wire]
Torment = Callable[[Stage, Wires, random.Random], Coroutine[Any, Any, str]]


async def nothing(_ring: Stage, _wires: Wires, _dice: random.Random) -> str:
    """What a run gives that is left alone."""
    return "left alone"


async def kills(ring: Stage, _wires: Wires, dice: random.Random) -> str:
    """`kill -9` of one process after the other: services, bus and rules judge."""
    for _ in range(KILLS):
        await asyncio.sleep(dice.uniform(*PAUSE_S))
        _kill(ring, dice.choice((*SERVICES, "bus", "rules-judge")))
    return f"{KILLS} kills"


async def together(ring: Stage, _wires: Wires, dice: random.Random) -> str:
    """`kill -9` of all five services at once, a few times."""
    for _ in range(ALL_AT_ONCE):
        await asyncio.sleep(dice.uniform(1.0, 10.0))
        for name in SERVICES:
            _kill(ring, name)
    return f"all killed {ALL_AT_ONCE} times"


async def bus_away(ring: Stage, wires: Wires, dice: random.Random) -> str:
    """The bus cannot be reached for five minutes."""
    return await _away(ring, wires, dice, "bus")


async def store_away(ring: Stage, wires: Wires, dice: random.Random) -> str:
    """The store cannot be reached for one minute."""
    return await _away(ring, wires, dice, "store")


TORMENTS: Final[dict[str, Torment]] = {
    "kills": kills,
    "together": together,
    "bus-away": bus_away,
    "store-away": store_away,
}
COSTS_SEGMENTS: Final = frozenset({"store-away"})  # recorders drop what does not fit into their memory, and say so


def _kill(ring: Stage, name: str) -> None:
    """`kill -9`, unless it lies dead already."""
    if ring.process(name).exited is None:
        with suppress(ProcessLookupError):
            ring.kill(name)


async def _away(ring: Stage, wires: Wires, dice: random.Random, name: str) -> str:
    """Cut one server off at a random moment: how much more the services then held, and when the ring went on."""
    await asyncio.sleep(dice.uniform(2.0, 15.0))
    wires[name].cut_off()
    await asyncio.sleep(NOTICED_S)
    before = _memory(ring)
    await asyncio.sleep(AWAY_S[name] - NOTICED_S)
    grown = max(after - held for after, held in zip(_memory(ring), before, strict=True))
    done = await _objects(ring)
    wires[name].join()
    back = time.monotonic()
    await ring.until(lambda: _more(ring, done))
    took = time.monotonic() - back
    return f"{name} away {AWAY_S[name]:.0f} s, no service held over {grown:.1f} MB more, went on after {took:.1f} s"


def _memory(ring: Stage) -> list[float]:
    """What each service holds now, in megabytes."""
    return [memory_mb(process) for name in SERVICES if (process := ring.process(name).process) is not None]


async def _objects(ring: Stage) -> int:
    """How many objects of the run are in the store, to see that it goes on."""
    scores = (keys.scores_prefix(RUN, epoch) for epoch in range(ring.epochs))
    prefixes = (keys.segments_prefix(RUN), keys.run_prefix(RUN), *scores)
    return sum([len(await ring.store.list(prefix)) for prefix in prefixes])


async def _more(ring: Stage, done: int) -> bool:
    return await _objects(ring) > done
