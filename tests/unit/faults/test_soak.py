"""The soak campaign: rounds are kept and resumed, faults are counted by process, tables follow the results."""

import ast
import json
import random
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Final, cast

import pytest

from cli.stack.ports import PortAllocator
from cli.stack.services import SERVICES
from tests.faults import process_kills, raw_audit
from tests.faults.injection import Injection
from tests.faults.live_system import LiveSystem
from tests.faults.process_kills import MIN_FAULTS, add_kills, kill_process
from tests.faults.results_page import PAGE, generated, write_results
from tests.faults.run_audit import RunAudit
from tests.faults.soak import campaign
from tests.faults.soak.campaign import Campaign, record_of
from tests.faults.soak.records import RoundRecord, append_round, hits_of_roles, read_rounds
from tests.faults.soak.soak_round import EPOCHS, UNDISTURBED, SoakRound
from tests.faults.soak.table import NAME, NOT_MEASURED, RESULTS, block, content_of, kinds_table, roles_table
from tests.port_shares import SharePortAllocator

NO_PID: Final = 2**22 + 1  # above the kernel's maximum
BLOCK = "before\n<!-- soak -->\nold\n<!-- end of soak -->\nafter\n"


def kept(kind: str = "kills", seed: int = 0, **changes: object) -> RoundRecord:
    """A finished round with twelve faults."""
    values = {"hits": {"judge": {"kill": 8}, "bus": {"kill": 3, "purge": 1}}, "segments": 36, "number": 12} | changes
    return RoundRecord(kind, seed, 90.0, "12 kills", **values)  # type: ignore[arg-type]


def played(kind: str, faults: int) -> SoakRound:
    """A sound run with so many faults."""
    audit = RunAudit(epochs=EPOCHS, scores={"one": ("judged", 0.5)}, acknowledged=["one"], recorded={"one"}, shaped={1})
    return SoakRound(kind, "finished", 90.0, "kills", audit, [], faults, {"judge": Counter(kill=faults)})


def test_a_state_file_keeps_finished_rounds(tmp_path: Path) -> None:
    rounds = [kept(), kept("purges", 1, violations=["1 segments lost: ['one']"], lost=1)]
    for one in rounds:
        append_round(one, tmp_path / "state")
    assert read_rounds(tmp_path / "state") == rounds
    assert read_rounds(tmp_path / "absent") == []


async def test_a_complete_campaign_plays_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(campaign, "run_round")
    for one in (kept(seed=0), kept(seed=1), kept("purges", 0)):
        append_round(one, tmp_path / "state")
    rounds = await Campaign(["kills"], range(2), state=tmp_path / "state").play()
    assert [(one.kind, one.seed) for one in rounds] == [("kills", 0), ("kills", 1)]


async def test_an_interrupted_campaign_plays_the_open_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    async def run_round(kind: str, seed: int, _ports: PortAllocator, _logs: Path | None) -> SoakRound:
        asked.append((kind, seed))
        if seed == 2:
            raise ExceptionGroup("a task", [TimeoutError("no progress")])
        return played(kind, 12)

    monkeypatch.setattr(campaign, "run_round", run_round)
    append_round(kept(seed=0), tmp_path / "state")
    wanted = Campaign(["kills"], range(3), jobs=2, state=tmp_path / "state")
    rounds = await wanted.play()
    assert asked == [(UNDISTURBED, 0), ("kills", 1), ("kills", 2)]
    assert [(one.seed, one.stuck, one.violations) for one in rounds] == [
        (0, False, []),
        (1, False, []),
        (2, True, ["TimeoutError: no progress"]),
    ]
    assert len(read_rounds(tmp_path / "state")) == 3


def test_a_round_with_too_few_faults_is_not_sound() -> None:
    assert record_of(played("kills", MIN_FAULTS), 0, played(UNDISTURBED, 0).audit).violations == []
    (violation,) = record_of(played("kills", MIN_FAULTS - 1), 0, played(UNDISTURBED, 0).audit).violations
    assert violation == f"the run ended after {MIN_FAULTS - 1} faults; a round needs {MIN_FAULTS}"


@pytest.mark.parametrize(
    ("kind", "segment", "compared"),
    [
        ("kills", "one", True),
        ("store-faults", "one", True),
        ("store-faults", "two", False),
        ("clock-steps", "one", False),
    ],
)
def test_scores_are_compared_when_no_segment_was_dropped(kind: str, segment: str, compared: bool) -> None:
    undisturbed = played(UNDISTURBED, 0).audit
    round_ = played(kind, MIN_FAULTS)
    round_.audit.acknowledged, round_.audit.recorded = [segment], {segment}
    round_.audit.scores = {segment: ("judged", 0.25)}  # the undisturbed run has 0.5
    violations = record_of(round_, 0, undisturbed).violations
    assert violations == (["1 segments differ: ['one']"] if compared else [])


def test_faults_are_counted_by_process() -> None:
    rounds = [kept(), kept(seed=1), kept("pauses", hits={"judge": {"pause": 2}})]
    assert hits_of_roles(rounds) == {"judge": {"kill": 16, "pause": 2}, "bus": {"kill": 6, "purge": 2}}
    assert "| judge | 18 | kill 16, pause 2 |" in roles_table(rounds)


def test_the_raw_audit_shares_nothing_with_the_services() -> None:
    """An error in a shared module would hide itself from an audit that uses the module."""
    tree = ast.parse(Path(raw_audit.__file__).read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    packages = {name.partition(".")[0] for name in imported}
    assert packages - sys.stdlib_module_names == {"minio"}


def test_the_table_names_kinds_seeds_and_failures(tmp_path: Path) -> None:
    seeds = [kept(seed=seed) for seed in (0, 1, 2, 5)]
    failed = kept("purges", 0, lost=2, violations=["2 segments lost: []"])
    assert "| kills | 4 | 48 | 0 | 0 | 0 | 0 | 0-2, 5 | 6 |" in kinds_table(seeds)
    write_results(tmp_path / "soak.json", content_of([failed, *seeds]), "2026-11-23")
    page = generated(BLOCK, NAME, tmp_path / "soak.json", block, NOT_MEASURED)
    assert "| all | 5 | 60 | 2 | 0 | 0 | 1 | 0-2, 5 | 8 |" in page
    assert "- purges, seed 0: 2 segments lost: []" in page
    assert page.startswith("before")
    assert page.endswith("after\n")
    assert json.loads((tmp_path / "soak.json").read_text())["rounds"][0] == asdict(seeds[0])
    assert NOT_MEASURED in generated(BLOCK, NAME, tmp_path / "absent", block, NOT_MEASURED)


def test_the_page_shows_the_committed_campaign() -> None:
    text = PAGE.read_text("utf-8")
    assert generated(text, NAME, RESULTS, block, NOT_MEASURED) == text, "run `python -m tests.faults.soak.table`"


def test_ports_come_from_the_range_of_their_job() -> None:
    jobs = [SharePortAllocator(number, 2) for number in range(2)]
    first, second = ([job.allocate() for _ in range(50)] for job in jobs)
    assert max(first) < min(second)


class LivingRing:
    """A ring whose processes always run; kills are only counted."""

    def __init__(self) -> None:
        self.killed: Counter[str] = Counter()

    def process(self, _name: str) -> SimpleNamespace:
        """A process without children."""
        return SimpleNamespace(process=SimpleNamespace(pid=NO_PID), exit_code=None)

    def kill(self, name: str) -> None:
        """Count a kill."""
        self.killed[name] += 1


@pytest.mark.parametrize("store", [False, True])
async def test_a_short_scenario_is_followed_by_kills(monkeypatch: pytest.MonkeyPatch, store: bool) -> None:
    monkeypatch.setattr(process_kills, "KILL_INTERVAL_S", (0.0, 0.0))
    ring = LivingRing()
    injection = Injection(cast(LiveSystem, ring), {}, random.Random(3))
    injection.hit("clock step", *SERVICES)
    await add_kills(injection, store=store)
    assert injection.number == MIN_FAULTS
    assert ring.killed.total() == MIN_FAULTS - 1
    assert {"bus", "rules-judge"} <= ring.killed.keys()
    assert ("store" in ring.killed) == store  # a kill of the store may cost segments
    assert max(injection.of(role) for role in SERVICES) <= 3  # what was hit least comes next


async def test_a_process_that_has_ended_is_not_counted() -> None:
    ring = LivingRing()
    injection = Injection(cast(LiveSystem, ring), {}, random.Random(3))
    ended = SimpleNamespace(process=SimpleNamespace(pid=NO_PID), exit_code=-9)
    ring.process = lambda _name: ended  # type: ignore[method-assign]
    assert not kill_process(injection, "judge")
    assert (injection.number, ring.killed) == (0, {})
