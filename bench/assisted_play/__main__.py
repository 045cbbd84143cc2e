"""What planner and guidance cost a run whose models are away or take 60 s: `python -m bench.assisted_play`.

One run with 16 games trains with its assistants and without them in turns, an update at a time. `away`: nothing listens
at the models' address. `slow`: a server accepts each call and never answers. The environments may wait for plans, as by
default. Steps in which a game stood still do not count. Episodes begin in a room with an open puzzle, so that each of
them asks for a plan. Two runs side by side cannot show a difference of 3 %, because the speeds of two equal runs differ
by 5 % from start to end. Both turns use the guided network, so the cost of its ten additional inputs is not measured.
"""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from bench.assisted_play.silent_server import silent_server
from bench.harness.measure import Figures, interleave, median_row, parser, ratios, report

if TYPE_CHECKING:
    from services.trainer.driver.session import TrainingSession

ROUNDS: Final = 30
SEEDS: Final = 3
SETTINGS: Final = {
    "world": "garden", "env_runners": 0, "envs_per_runner": 16, "batch_size": 2_048, "epoch_steps": 10_000_000,
    "planner": {"mode": "model"}, "guidance": {"mode": "model"},
}  # fmt: skip


def session(name: str, seed: int, url: str) -> "TrainingSession":
    """A training session that asks models at this address."""
    from bench.assisted_play.puzzle_env import PuzzleEnv
    from services.trainer.driver.session import TrainingSession
    from services.trainer.planning.planner_file import load_planner_file
    from services.trainer.rl.epoch_plan import EpochPlan
    from services.trainer.rl.planning_process import PlanningProcess
    from services.trainer.rl.session_config import TrainingSessionConfig
    from shared.contracts.ids import RunId
    from shared.contracts.run import RunConfig

    run = RunConfig.model_validate({**SETTINGS, "seed": seed})
    config = TrainingSessionConfig(RunId(name), run)
    made = TrainingSession(config, PuzzleEnv, PlanningProcess(load_planner_file(None, url), RunId(name), None))
    made.begin(lambda numbers: EpochPlan(0), 0)
    return made


class Speed:
    """Steps per second of one update: of the clock, and of this process's cores, which other work does not change."""

    def __init__(self, trained: "TrainingSession", *, assisted: bool) -> None:
        self._trained, self._assisted = trained, assisted
        self.per_cpu_s: list[float] = []

    def __call__(self) -> float:
        """One update; the steps per second of the clock."""
        self._trained.algorithm.env_runner.env.unwrapped.assist(self._assisted)
        began, worked, before = time.perf_counter(), time.process_time(), self._trained.steps
        self._trained.iterate()
        steps = self._trained.steps - before
        self.per_cpu_s.append(steps / (time.process_time() - worked))
        return steps / (time.perf_counter() - began)


@dataclass(slots=True)
class Turns:
    """What all runs showed: ratios of neighbouring turns by clock and by cores, steps/s alone, counts of calls."""

    clock: list[float] = field(default_factory=list)
    cores: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)
    takeovers: float = 0
    unanswered: int = 0
    breakers: int = 0

    def add(self, name: str, seed: int, url: str, rounds: int) -> None:
        """Measure one run whose models are at this address."""
        run = session(name, seed, url)
        run.iterate()  # the games begin
        alone, helped = Speed(run, assisted=False), Speed(run, assisted=True)
        found = interleave({"plain": alone, "assisted": helped}, rounds)
        self.clock += ratios(found["assisted"], found["plain"])
        self.cores += ratios(helped.per_cpu_s[1:], alone.per_cpu_s[1:])
        self.plain += found["plain"]
        run.collect(final=True)
        calls = run.model_calls.values()
        self.takeovers += sum(summary.facts.get("takeovers", 0) for summary in run.summaries)
        self.unanswered += sum(found.outcomes.get("unavailable", 0) for found in calls)
        self.breakers += sum(found.breaker != "closed" for found in calls)
        run.close()


def measured(name: str, found: Turns) -> tuple[Figures, list[tuple[str, str]]]:
    """The figures of all runs, and their rows."""
    figures: Figures = {}
    rows = []
    for measure, label, shares in (
        ("ratio", "the clock", found.clock),
        ("cpu_ratio", "the process's cores", found.cores),
    ):
        these, row = median_row(f"{name}_{measure}", f"models {name}, by {label}", shares)
        figures |= these
        rows.append(row)
    figures |= {
        f"{name}_plain_steps_per_s": statistics.median(found.plain),
        f"{name}_takeovers": found.takeovers,
        f"{name}_calls_without_answer": found.unanswered,
        f"{name}_open_breakers": found.breakers,
    }
    asked = f"{found.takeovers:.0f} takeovers, {found.unanswered} calls without an answer"
    return figures, [*rows, (f"models {name}", asked)]


@contextmanager
def absent_address() -> Iterator[str]:
    """An address at which nothing listens."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    yield f"http://127.0.0.1:{port}/v1"


def main() -> None:
    """Measure and report."""
    command = parser(__doc__)
    command.add_argument("--rounds", type=int, default=ROUNDS, help="of each run; more narrow the intervals")
    command.add_argument("--seeds", type=int, default=SEEDS, help="number of runs")
    options: Any = command.parse_args()
    rounds = options.rounds // 10 if options.quick else options.rounds
    import ray

    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, configure_logging=False)
    figures: Figures = {}
    rows: list[tuple[str, str]] = []
    for name, server in (("away", absent_address), ("slow", silent_server)):
        found = Turns()
        with server() as url:
            for seed in range(options.seeds):
                found.add(name, seed, url, rounds)
        these, lines = measured(name, found)
        figures |= these
        rows += lines
    ray.shutdown()
    report("steps/s with planner and guidance over steps/s without", rows, figures, options.json)


if __name__ == "__main__":
    main()
