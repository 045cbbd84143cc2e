"""A run with restarts ends with the same archive and orders after random kills, and after a time without its store.

A round is that of the soak test: `kills` ends fifteen random processes at random moments, `children` the driver, and in
`store-away` the store cannot be reached for a minute.
"""

import pytest
import pytest_asyncio

from cli.stack.ports import PortAllocator
from tests.faults.run_audit import RunAudit
from tests.faults.soak.soak_round import UNDISTURBED, run_round

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_800)]

# Without its store a recorder may drop segments, so a reward model would see others; play without one is the same.
CONFIG = {"restarts": {"share": 0.5}, "shaping": {"mode": "none"}}
SEED = 27


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def undisturbed() -> RunAudit:
    """Audit of an undisturbed run."""
    audit = (await run_round(UNDISTURBED, SEED, PortAllocator(), config=CONFIG)).audit
    assert None not in (*audit.archives, *audit.pinned[1:])
    return audit


@pytest.mark.parametrize("kind", ["kills", "children", "store-away"])
async def test_faults_change_neither_the_archive_nor_the_orders(kind: str, undisturbed: RunAudit) -> None:
    disturbed = await run_round(kind, SEED, PortAllocator(), config=CONFIG)
    assert disturbed.state == "finished", disturbed.faults
    assert disturbed.number > 0
    assert disturbed.audit.archives == undisturbed.archives
    assert disturbed.audit.pinned == undisturbed.pinned
