"""2,000 simulated histories of the whole ring under random faults, and errors that the simulation must find.

`python -m tests.faults.simulation` plays 200,000.
"""

import itertools
from collections.abc import Iterator

import pytest
import structlog

from services.coordinator.api.run_service import RunService
from services.rewardmodel import training_runner
from shared.contracts.run import RunRecord
from shared.store.memory import MemoryStore
from tests.faults.simulation.__main__ import fails, play_chunk, report_failure
from tests.faults.simulation.history import draw
from tests.faults.simulation.shrink import shortest
from tests.faults.simulation.simulation import Simulation, fast_parsing, silence_logs, violations_of

HISTORIES, PARTS = 2_000, 4
SEARCHED = 300  # histories in which a planted error must show itself


@pytest.fixture(autouse=True)
def _fast() -> Iterator[None]:
    silence_logs()
    with fast_parsing():
        yield
    structlog.reset_defaults()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_history_loses_doubles_or_invents_a_segment(part: int) -> None:
    size = HISTORIES // PARTS
    failed = play_chunk(range(part * size, (part + 1) * size)).failed
    assert not failed, report_failure(failed[0])


def test_a_history_takes_the_same_course_each_time() -> None:
    courses = []
    for _ in range(2):
        simulation = Simulation()
        simulation.play(draw(7))
        courses.append([(event.type, event.subject, event.fence) for event in simulation.servers.published])
    assert courses[0] == courses[1]
    assert len(courses[0]) > 10


def overwrite(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that ignores the condition of a create."""
    monkeypatch.setattr(MemoryStore, "create", MemoryStore.put)


def seed_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reward model whose seed does not follow from its run."""
    numbers = itertools.count()
    monkeypatch.setattr(training_runner, "training_seed", lambda *_: next(numbers))


def share_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that every request owns."""

    async def existing(self: RunService, wanted: RunRecord, _: bool) -> RunRecord:
        return await self.models.runs.latest(wanted.run)

    monkeypatch.setattr(RunService, "_existing", existing)


PLANTED = {"overwrite": overwrite, "seed by chance": seed_by_chance, "share runs": share_runs}


@pytest.mark.slow
@pytest.mark.parametrize("error", PLANTED)
def test_a_planted_error_is_found_and_its_history_shortened(error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    violations_of([])  # before the error: the undisturbed run
    PLANTED[error](monkeypatch)
    steps = next(draw(seed) for seed in range(SEARCHED) if fails(draw(seed)))
    short = shortest(steps, fails)
    assert fails(short)
    assert len(short) <= 8
    assert not any(fails([*short[:at], *short[at + 1 :]]) for at in range(len(short)))
