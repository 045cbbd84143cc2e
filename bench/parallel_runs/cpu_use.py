"""CPU time of a process and all its descendants, of which some end meanwhile. It hardly depends on other load."""

from pathlib import Path

from bench.harness.measure import process_cpu
from cli.stack.port_owner import family


class CpuOfDescendants:
    """Sums what `sample` saw of each process. What a process used after its last sample is missing."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._seen: dict[tuple[int, float], float] = {}

    def sample(self) -> float:
        """CPU seconds since the processes' starts, of all descendants so far."""
        for pid in {*family(self._root)} - {self._root}:
            try:
                began = float(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
                self._seen[pid, began] = process_cpu(pid)
            except OSError:  # it ended meanwhile
                continue
        return sum(self._seen.values())
