"""What planner and guidance cost a run whose models are away or take 60 s: `python -m bench.assisted_play`.

Training with and without them takes turns, an update at a time, in one process with 16 games. `away`: nothing listens
at the models' address. `slow`: a server accepts each call and never answers. The environments may wait for plans, as by
default. Steps in which a game stood still do not count. Episodes begin in a room with an open puzzle, so that each of
them asks for a plan.
"""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from bench.assisted_play.silent_server import silent_server
from bench.harness.measure import Figures, interleave, parser, ratio, ratio_within, report

if TYPE_CHECKING:
    from services.trainer.driver.session import TrainingSession

ROUNDS: Final = 30
SETTINGS: Final = {
    "world": "garden", "env_runners": 0, "envs_per_runner": 16, "batch_size": 2_048, "epoch_steps": 10_000_000,
}  # fmt: skip
ASSISTED: Final = {"planner": {"mode": "model"}, "guidance": {"mode": "model"}}


def session(name: str, url: str | None) -> "TrainingSession":
    """A training session; with an address, one that asks models there."""
    from bench.assisted_play.puzzle_env import PuzzleEnv
    from services.trainer.driver.session import TrainingSession
    from services.trainer.planning.planner_file import load_planner_file
    from services.trainer.rl.epoch_plan import EpochPlan
    from services.trainer.rl.planning_process import PlanningProcess
    from services.trainer.rl.session_config import TrainingSessionConfig
    from shared.contracts.ids import RunId
    from shared.contracts.run import RunConfig

    run = RunConfig.model_validate(SETTINGS if url is None else {**SETTINGS, **ASSISTED})
    config = TrainingSessionConfig(RunId(name), run)
    planning = None if url is None else PlanningProcess(load_planner_file(None, url), RunId(name), None)
    made = TrainingSession(config, PuzzleEnv, planning)
    made.begin(lambda numbers: EpochPlan(0), 0)
    return made


class Speed:
    """Steps per second of one update: of the clock, and of this process's cores, which other work does not change."""

    def __init__(self, trained: "TrainingSession") -> None:
        self._trained = trained
        self.per_cpu_s: list[float] = []

    def __call__(self) -> float:
        """One update; the steps per second of the clock."""
        began, worked, before = time.perf_counter(), time.process_time(), self._trained.steps
        self._trained.iterate()
        steps = self._trained.steps - before
        self.per_cpu_s.append(steps / (time.process_time() - worked))
        return steps / (time.perf_counter() - began)


def measure(name: str, url: str, rounds: int) -> tuple[Figures, list[tuple[str, str]]]:
    """Compare a run whose models are at this address with one that asks none."""
    plain, assisted = session(f"plain-{name}", None), session(name, url)
    alone, helped = Speed(plain), Speed(assisted)
    found = interleave({"plain": alone, "assisted": helped}, rounds)
    cpu = helped.per_cpu_s[1:], alone.per_cpu_s[1:]
    assisted.collect(final=True)
    calls = assisted.model_calls
    begun = sum(summary.facts["takeovers"] for summary in assisted.summaries)
    for one in (plain, assisted):
        one.close()
    share = ratio(found["assisted"], found["plain"])
    low, high = ratio_within(found["assisted"], found["plain"])
    unavailable = sum(found.outcomes.get("unavailable", 0) for found in calls.values())
    breakers = sum(found.breaker != "closed" for found in calls.values())
    cpu_share, (cpu_low, cpu_high) = ratio(*cpu), ratio_within(*cpu)
    figures = {
        f"{name}_cpu_ratio": cpu_share,
        f"{name}_cpu_ratio_low": cpu_low,
        f"{name}_cpu_ratio_high": cpu_high,
        f"{name}_ratio": share,
        f"{name}_ratio_low": low,
        f"{name}_ratio_high": high,
        f"{name}_plain_steps_per_s": statistics.median(found["plain"]),
        f"{name}_takeovers": begun,
        f"{name}_calls_without_answer": unavailable,
        f"{name}_open_breakers": breakers,
    }
    asked = f"{begun:.0f} takeovers, {unavailable:.0f} calls without an answer"
    rows = [
        (f"models {name}, by the clock", f"{share:.3f} ({low:.3f} to {high:.3f})"),
        (f"models {name}, by the process's cores", f"{cpu_share:.3f} ({cpu_low:.3f} to {cpu_high:.3f}); {asked}"),
    ]
    return figures, rows


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
    command.add_argument("--rounds", type=int, default=ROUNDS, help="more of them narrow the intervals")
    options: Any = command.parse_args()
    rounds = options.rounds // 10 if options.quick else options.rounds
    import ray

    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, configure_logging=False)
    figures: Figures = {}
    rows: list[tuple[str, str]] = []
    for name, server in (("away", absent_address), ("slow", silent_server)):
        with server() as url:
            measured, lines = measure(name, url, rounds)
        figures |= measured
        rows += lines
    ray.shutdown()
    report("steps/s with planner and guidance over steps/s without", rows, figures, options.json)


if __name__ == "__main__":
    main()
