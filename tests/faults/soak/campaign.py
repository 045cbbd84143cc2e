"""A campaign: all rounds of all kinds, several at a time, compared with one undisturbed run."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.stack.ports import PortAllocator
from tests.faults.fault_injection import DROPS_SEGMENTS, PASSES_DEADLINES
from tests.faults.run_audit import RunAudit
from tests.faults.soak.records import RoundRecord, append_round, read_rounds
from tests.faults.soak.soak_round import UNDISTURBED, SoakRound, run_round, unavailable
from tests.port_shares import SharePortAllocator


@dataclass(frozen=True, slots=True)
class Campaign:
    """Which rounds to play. `state` keeps finished rounds, `logs` the logs of each round's processes."""

    kinds: Sequence[str]
    seeds: Sequence[int]
    jobs: int = 1
    state: Path | None = None
    logs: Path | None = None

    async def play(self) -> list[RoundRecord]:
        """Play all rounds that the state file lacks; return all rounds of the campaign."""
        wanted = [(kind, seed) for seed in self.seeds for kind in self.kinds]
        finished = {(one.kind, one.seed): one for one in read_rounds(self.state)}
        found = [finished[one] for one in wanted if one in finished]
        open_rounds = [one for one in wanted if one not in finished and _can_run(*one)]
        if not open_rounds:
            return found
        undisturbed = await run_round(UNDISTURBED, 0, PortAllocator(), self.logs)
        if violations := undisturbed.violations():
            raise RuntimeError(f"the undisturbed run is not sound: {'; '.join(violations)}")
        _print(f"undisturbed: {undisturbed.seconds:.0f} s, {len(undisturbed.audit.scores)} segments")
        queue = iter(open_rounds)  # shared: each job takes the next round

        async def work(job: int) -> list[RoundRecord]:
            return [await self._round(kind, seed, job, undisturbed.audit) for kind, seed in queue]

        played = await asyncio.gather(*map(work, range(self.jobs)))
        return found + [record for of_job in played for record in of_job]

    async def _round(self, kind: str, seed: int, job: int, undisturbed: RunAudit) -> RoundRecord:
        """Play one round and keep it. A round that raises is a failed round; the campaign goes on."""
        ports = SharePortAllocator(job, self.jobs)
        try:
            record = record_of(await run_round(kind, seed, ports, self.logs), seed, undisturbed)
        except Exception as error:  # any error: a system that hangs or breaks is what a round looks for
            record = RoundRecord(kind, seed, 0.0, "not known", stuck=True, violations=[_reason(error)])
        append_round(record, self.state)
        _print(record.line())
        return record


def must_equal(played: SoakRound, undisturbed: RunAudit) -> bool:
    """Whether a round must have the undisturbed results: always, unless its kind drops segments and it lacks some.

    A clock step may pass a judge's deadline: then a reward model learns from the scores that are there.
    """
    if played.kind not in DROPS_SEGMENTS:
        return True
    return played.kind not in PASSES_DEADLINES and set(played.audit.acknowledged) == set(undisturbed.acknowledged)


def record_of(played: SoakRound, seed: int, undisturbed: RunAudit) -> RoundRecord:
    """What is kept of a round."""
    violations = played.violations()
    if must_equal(played, undisturbed):
        violations += played.differences(undisturbed)
    return RoundRecord(
        kind=played.kind,
        seed=seed,
        seconds=round(played.seconds, 1),
        faults=played.faults,
        number=played.number,
        hits={role: dict(faults) for role, faults in sorted(played.hits.items())},
        segments=len(played.audit.scores),
        lost=len(played.audit.lost),
        doubled=len(played.audit.duplicated),
        stuck=played.state != "finished",
        violations=violations,
    )


def _can_run(kind: str, seed: int) -> bool:
    reason = unavailable(kind)
    if reason is not None:
        _print(f"{kind}, seed {seed}: skipped, because {reason}")
    return reason is None


def _reason(error: BaseException) -> str:
    """The first error inside groups of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
