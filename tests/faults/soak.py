"""Soak test: faults at random moments on the complete ring, before a release: `python -m tests.faults.soak --help`.

Each round is one run of real processes under one fault scenario. Every epoch must finish; every listed segment must be
judged exactly once. Except after a store outage, segments and scores must equal those of an undisturbed run. Each round
prints one line; the exit code is 1 if a round violated a guarantee.
"""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cli.stack.services import SERVICES
from tests.faults.fault_injection import DROPS_SEGMENTS, SCENARIOS, Proxies, no_faults
from tests.faults.fault_proxy import FaultProxy, serve_proxy
from tests.faults.live_system import RUN, live_system
from tests.faults.raw_audit import raw_problems
from tests.faults.run_audit import RunAudit
from tests.faults.small_disk import mountable, small_disk
from tests.faults.stepped_clock import CLOCK_FILE, library, stepped_environment

EPOCHS: Final = 4
UNDISTURBED: Final = "undisturbed"
MAX_ROUND_S: Final = 900.0  # the supervisor waits up to 15 s before it restarts a process that died often


@dataclass(frozen=True, slots=True)
class SoakRound:
    """A completed run: its final state and duration, the summary of its faults, and its audit."""

    state: str
    seconds: float
    faults: str
    audit: RunAudit
    raw_problems: list[str]

    def violations(self) -> list[str]:
        """Every violated guarantee; empty for a sound round."""
        violations = self.audit.violations()
        if self.state != "finished" or self.audit.epochs != EPOCHS:
            violations.append(f"the run {self.state} with {self.audit.epochs} epochs of {EPOCHS}")
        violations += self.raw_problems
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

    def line(self, violations: Sequence[str]) -> str:
        """The round as one line of output."""
        end = f"FAILED: {'; '.join(violations)}" if violations else f"{len(self.audit.scores)} segments, passed"
        return f"{self.state} after {self.seconds:.0f} s; {self.faults}; {end}"


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
    if kind != "clock-steps":
        return {}
    return {name: dict(stepped_environment(root / CLOCK_FILE)) for name in SERVICES}


async def run_round(kind: str, seed: int, logs: Path | None = None) -> SoakRound:
    """Run one round, with its bus and store behind proxies. `logs` receives the logs of its processes."""
    scenario = SCENARIOS.get(kind, no_faults)
    proxies: Proxies = {"bus": FaultProxy(seed=seed), "store": FaultProxy(seed=seed)}
    with prepared_root(kind) as root:
        async with (
            serve_proxy(proxies["bus"]),
            serve_proxy(proxies["store"]),
            live_system(root, proxies["store"], proxies["bus"], **environment(kind, root)) as ring,
            asyncio.TaskGroup() as group,
        ):
            await ring.start_run(epochs=EPOCHS)
            started = time.monotonic()
            injection = group.create_task(scenario(ring, proxies, random.Random(seed)))
            state = await ring.wait_for_end(MAX_ROUND_S)
            seconds = time.monotonic() - started
            faults = injection.result() if injection.done() else "the run ended before the faults did"
            injection.cancel()
            raw = await asyncio.to_thread(raw_problems, ring.system.settings, RUN)
            if logs is not None:
                shutil.copytree(ring.system.layout.logs, logs / f"{kind}-{seed}", dirs_exist_ok=True)
            return SoakRound(state, seconds, faults, await ring.audit(), raw)


async def soak(kinds: Sequence[str], seeds: Sequence[int], logs: Path | None = None) -> bool:
    """Run every kind with every seed; return whether all rounds passed."""
    undisturbed = await run_round(UNDISTURBED, 0)
    violations = undisturbed.violations()
    passed = not violations
    _print(f"undisturbed: {undisturbed.line(violations)}")
    for seed in seeds:
        for kind in kinds:
            if reason := unavailable(kind):
                _print(f"{kind}, seed {seed}: skipped, because {reason}")
                continue
            result = await run_round(kind, seed, logs)
            violations = result.violations()
            if kind not in DROPS_SEGMENTS:
                violations += result.differences(undisturbed.audit)
            passed = passed and not violations
            _print(f"{kind}, seed {seed}: {result.line(violations)}")
    return passed


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    """Run the soak test that the command line describes."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=__doc__)
    parser.add_argument("--kind", choices=[*SCENARIOS], action="append", help="may be given repeatedly; default: all")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each kind (default: 3)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first round (default: 0)")
    parser.add_argument("--logs", type=Path, help="directory that receives the logs of each round's processes")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.rounds)
    return 0 if asyncio.run(soak(options.kind or [*SCENARIOS], seeds, options.logs)) else 1


if __name__ == "__main__":
    sys.exit(main())
