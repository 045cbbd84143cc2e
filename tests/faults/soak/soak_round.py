"""One round of the soak test: one run of real processes under one fault scenario.

Every epoch must finish; every listed segment must be judged exactly once. Except after a store outage, segments and
scores must equal those of an undisturbed run.
"""

import asyncio
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from cli.stack.ports import PortAllocator
from cli.stack.services import SERVICES
from tests.faults.fault_injection import (
    ACCOMPANIED,
    DROPS_SEGMENTS,
    SCENARIOS,
)
from tests.faults.fault_proxy import FaultProxy, serve_proxy
from tests.faults.injection import FaultScenario, Injection, Proxies
from tests.faults.live_system import RUN, live_system
from tests.faults.process_kills import MIN_FAULTS, add_kills
from tests.faults.raw_audit import raw_problems
from tests.faults.run_audit import RunAudit
from tests.faults.small_disk import mountable, small_disk
from tests.faults.stepped_clock import CLOCK_FILE, library, stepped_environment

EPOCHS: Final = 3
UNDISTURBED: Final = "undisturbed"
USUAL: Final[Mapping[str, Any]] = MappingProxyType({})
POLL_S: Final = 0.5
MAX_ROUND_S: Final = 900.0  # the supervisor waits up to 15 s before it restarts a process that died often


@dataclass(frozen=True, slots=True)
class SoakRound:
    """A completed run: its final state and duration, its faults in words, and its audit.

    `number` counts the faults, `hits` those of each role: a fault that hits several processes counts for each.
    """

    kind: str
    state: str
    seconds: float
    faults: str
    audit: RunAudit
    raw_problems: list[str]
    number: int = 0
    hits: dict[str, Counter[str]] = field(default_factory=dict)

    def violations(self) -> list[str]:
        """Every violated guarantee; empty for a sound round."""
        violations = self.audit.violations()
        if self.state != "finished" or self.audit.epochs != EPOCHS:
            violations.append(f"the run {self.state} with {self.audit.epochs} epochs of {EPOCHS}")
        violations += self.raw_problems
        if self.kind != UNDISTURBED and self.number < MIN_FAULTS:
            violations.append(f"the run ended after {self.number} faults; a round needs {MIN_FAULTS}")
        if not self.audit.shaped:
            violations.append("no epoch was shaped: no reward model passed its gates")
        if unjudged := sorted(name for name, (status, _) in self.audit.scores.items() if status != "judged"):
            violations.append(f"{len(unjudged)} segments not judged: {unjudged[:5]}")
        return violations

    def differences(self, undisturbed: RunAudit) -> list[str]:
        """Segments or scores that differ from those of an undisturbed run; empty if all are equal."""
        scores, expected = self.audit.scores, undisturbed.scores
        differing = sorted(name for name in scores.keys() | expected.keys() if scores.get(name) != expected.get(name))
        found = [f"{len(differing)} segments differ: {differing[:5]}"] if differing else []
        if self.audit.weights != undisturbed.weights:
            found.append("the reward models differ")
        return found


def unavailable(kind: str) -> str | None:
    """Why this kind cannot run here, or None."""
    if kind == "full-disk" and not mountable():
        return "it needs root, to mount a small disk"
    if kind == "clock-steps" and library() is None:
        return "it needs libfaketime (apt-get install libfaketime)"
    return None


@contextmanager
def prepared_root(kind: str) -> Iterator[Path]:
    """The directory of a system, on a small disk where the kind fills it."""
    with tempfile.TemporaryDirectory(prefix="soak-") as name, ExitStack() as stack:
        if kind == "full-disk":
            stack.enter_context(small_disk(Path(name)))
        yield Path(name)


def environment(kind: str, root: Path) -> dict[str, dict[str, str]]:
    """Further variables of each service."""
    stepped = stepped_environment(root / CLOCK_FILE) if kind == "clock-steps" else {}
    return {name: {**stepped} for name in SERVICES}


async def inject(kind: str, injection: Injection, minimum: int = MIN_FAULTS) -> str:
    """The faults of a round: its scenario, and kills up to `minimum` faults, beside it or after it."""
    if kind == UNDISTURBED:
        return "no faults"
    scenario: FaultScenario = SCENARIOS[kind]
    if kind in ACCOMPANIED:
        async with asyncio.TaskGroup() as group:
            killing = group.create_task(add_kills(injection, store=False, minimum=minimum))
            summary = await scenario(injection)
        return f"{summary}, beside {killing.result()} kills"
    summary = await scenario(injection)
    kills = await add_kills(injection, store=kind in DROPS_SEGMENTS, minimum=minimum)
    return f"{summary}, then {kills} kills" if kills else summary


async def run_round(
    kind: str,
    seed: int,
    ports: PortAllocator,
    logs: Path | None = None,
    config: Mapping[str, Any] = USUAL,
    minimum: int = MIN_FAULTS,
) -> SoakRound:
    """Run one round, with its bus and store behind proxies. `logs` receives the logs of its processes.

    `config` overrides parts of the run's usual configuration. Kills follow a scenario with fewer than `minimum` faults.
    """
    proxies: Proxies = {"bus": FaultProxy(seed=seed), "store": FaultProxy(seed=seed)}
    with prepared_root(kind) as root:
        async with (
            serve_proxy(proxies["bus"]),
            serve_proxy(proxies["store"]),
            live_system(root, proxies["store"], proxies["bus"], ports, **environment(kind, root)) as ring,
            asyncio.TaskGroup() as group,
        ):
            try:
                await ring.start_run(**{"epochs": EPOCHS, **config})
                started = time.monotonic()
                injection = Injection(ring, proxies, random.Random(seed))
                injecting = group.create_task(inject(kind, injection, minimum))
                state = await ring.wait_for_end(MAX_ROUND_S, POLL_S)
                seconds = time.monotonic() - started
                faults = injecting.result() if injecting.done() else "the run ended before the faults did"
                injecting.cancel()
                raw = await asyncio.to_thread(raw_problems, ring.system.settings, RUN)
            finally:
                if logs is not None:
                    shutil.copytree(ring.system.layout.logs, logs / f"{kind}-{seed}", dirs_exist_ok=True)
            return SoakRound(kind, state, seconds, faults, await ring.audit(), raw, injection.number, injection.hits)
