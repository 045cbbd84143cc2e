"""Finished rounds of a campaign: one JSON line each, so that an interrupted campaign continues behind them."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One finished round. `faults` describes its faults, `number` counts them, `hits` those of each role."""

    kind: str
    seed: int
    seconds: float
    faults: str
    number: int = 0
    hits: dict[str, dict[str, int]] = field(default_factory=dict)
    segments: int = 0
    lost: int = 0
    doubled: int = 0
    stuck: bool = False
    violations: list[str] = field(default_factory=list)

    def line(self) -> str:
        """The round as one line of output."""
        end = f"FAILED: {'; '.join(self.violations)}" if self.violations else f"{self.segments} segments, passed"
        return f"{self.kind}, seed {self.seed}: {self.seconds:.0f} s, {self.number} faults ({self.faults}); {end}"


def read_rounds(state: Path | None) -> list[RoundRecord]:
    """The finished rounds of a state file, in the order in which they ended."""
    if state is None or not state.exists():
        return []
    return [RoundRecord(**json.loads(line)) for line in state.read_text(encoding="utf-8").splitlines()]


def append_round(record: RoundRecord, state: Path | None) -> None:
    """Add one finished round to the state file."""
    if state is not None:
        with state.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(record)) + "\n")


def hits_of_roles(records: Iterable[RoundRecord]) -> dict[str, dict[str, int]]:
    """How often each role was hit in all rounds, by fault."""
    found: dict[str, dict[str, int]] = {}
    for record in records:
        for role, faults in record.hits.items():
            of_role = found.setdefault(role, {})
            for fault, times in faults.items():
                of_role[fault] = of_role.get(fault, 0) + times
    return found
