"""A run with restarts ends with the same archive and orders after kills of its drivers, and a time without its store.

A round is that of the soak test: `children` kills drivers and trainings of reward models, and in `store-away` the store
cannot be reached for a minute. What kills of services and servers change is the subject of `test_kills`.
"""

import asyncio
from typing import Final

import pytest
import pytest_asyncio

from cli.stack.ports import PortAllocator
from tests.faults.soak.soak_round import UNDISTURBED, SoakRound, run_round

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]

# Without its store a recorder may drop segments, so a reward model would see others; play without one is the same. Two
# epochs cover every moment before, during and after the transition between them.
CONFIG = {"epochs": 2, "restarts": {"share": 0.5}, "shaping": {"mode": "none"}}
SEED = 27
AWAY: Final = "store-away"
MUST_HIT: Final = {"children": ("driver", "kill"), AWAY: ("store", "outage")}
"""The process that a kind is about, and its fault: a round without it would show nothing."""


async def played(kind: str, ports: PortAllocator) -> SoakRound:
    """A round without the kills that follow a scenario: they are not this test's subject."""
    return await run_round(kind, SEED, ports, config=CONFIG, minimum=0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def first() -> dict[str, SoakRound]:
    """An undisturbed round and, at the same time because it mostly waits, the one without its store."""
    ports, kinds = PortAllocator(), (UNDISTURBED, AWAY)
    rounds = dict(zip(kinds, await asyncio.gather(*(played(kind, ports) for kind in kinds)), strict=True))
    undisturbed = rounds[UNDISTURBED].audit
    assert None not in (*undisturbed.archives, *undisturbed.pinned[1:])
    return rounds


@pytest.mark.parametrize("kind", MUST_HIT)
async def test_faults_change_neither_the_archive_nor_the_orders(kind: str, first: dict[str, SoakRound]) -> None:
    undisturbed = first[UNDISTURBED].audit
    disturbed = first[kind] if kind in first else await played(kind, PortAllocator())
    assert disturbed.state == "finished", disturbed.faults
    role, fault = MUST_HIT[kind]
    assert disturbed.hits[role][fault]
    assert disturbed.audit.archives == undisturbed.archives
    assert disturbed.audit.pinned == undisturbed.pinned
