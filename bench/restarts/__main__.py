"""What restarts from the archive of states cost training: `python -m bench.restarts`.

One run of the vale with 16 games trains whole epochs with restarts and without them in turns. An epoch with restarts
draws half of its starts from the archive, collects new cells, and stores what it found. `first` is the ratio over the
first quarter of the rounds, while most cells are new and their states are saved; `later` over the rest. The policy
stays random (a learning rate of almost nothing), but games that begin at other places need not cost the same.
"""

import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.harness.measure import Figures, interleave, median_row, parser, ratios, report

if TYPE_CHECKING:
    from services.trainer.rl.epoch_plan import EpochPlan
    from shared.contracts.epoch import ArchiveRef, EpochStart

ROUNDS: Final = 12
TILES: Final = 2  # as runs have by default
EPOCH_STEPS: Final = 40_960
SETTINGS: Final = {
    "world": "vale", "env_runners": 0, "envs_per_runner": 16, "batch_size": 2_048, "epoch_steps": EPOCH_STEPS,
    "ppo": {"learning_rate": 1e-12},
}  # fmt: skip


class Epochs:
    """The epochs of one run, with and without restarts. Both return steps/s of the clock."""

    def __init__(self, folder: Path, tiles: int) -> None:
        """`folder` holds the store; a cell of the archive spans `tiles` x `tiles` tiles."""
        from services.trainer.driver.blocking_store import BlockingStore
        from services.trainer.driver.driver_store import DriverStore
        from services.trainer.driver.session import TrainingSession
        from services.trainer.restarts.epoch_restarts import EpochRestarts
        from services.trainer.restarts.trajectories import ArchiveTrajectories
        from services.trainer.restarts.trajectory_player import TrajectoryPlayer
        from services.trainer.rl.session_config import TrainingSessionConfig
        from shared.contracts.ids import RunId
        from shared.contracts.run import RunConfig
        from shared.store.object_store import local_store

        self.run = RunId("bench")
        self.config = RunConfig.model_validate({**SETTINGS, "restarts": {"share": 0.5, "cell": tiles}})
        config = TrainingSessionConfig(self.run, self.config)
        store = DriverStore(BlockingStore(local_store(folder)), self.run, "bench")
        player = ArchiveTrajectories(store, lambda: TrajectoryPlayer(config.environment()))
        self.restarts, self.session = EpochRestarts(store, player), TrainingSession(config)
        self.archive: ArchiveRef | None = None
        self.epoch = -1
        self.per_cpu_s: dict[bool, list[float]] = {False: [], True: []}
        """Steps per second of this process's cores, which other work on the machine does not change, by restarts."""

    def without(self) -> float:
        """An epoch from the true start."""
        return self._play(restarts=False)

    def with_restarts(self) -> float:
        """An epoch that draws from the archive and adds to it."""
        return self._play(restarts=True)

    def _play(self, *, restarts: bool) -> float:
        self.epoch += 1
        session, order = self.session, self._order()
        began, worked = time.perf_counter(), time.process_time()
        session.begin(lambda numbers: self._plan(order, numbers, restarts), self.epoch)
        while session.steps < EPOCH_STEPS:
            session.iterate()
        session.collect(final=True)
        if restarts:
            self.archive = self.restarts.finish(order, session.states, session.visits)
        self.per_cpu_s[restarts].append(session.steps / (time.process_time() - worked))
        return session.steps / (time.perf_counter() - began)

    def _order(self) -> "EpochStart":
        from shared.contracts.epoch import EpochStart

        now = datetime.now(UTC)
        return EpochStart(
            run=self.run, epoch=self.epoch, fence=1, config=self.config, archive=self.archive, created=now
        )

    def _plan(self, order: "EpochStart", numbers: dict[str, int], restarts: bool) -> "EpochPlan":
        from services.trainer.rl.epoch_plan import EpochPlan

        plan = self.restarts.plan(order, None) if restarts else None
        return EpochPlan(self.epoch, first_episodes=numbers, restarts=plan)


def main() -> None:
    """Measure and report."""
    command = parser(__doc__)
    command.add_argument("--rounds", type=int, default=ROUNDS, help="epochs of each kind")
    command.add_argument("--cell", type=int, default=TILES, help="tiles that a cell of the archive spans")
    options: Any = command.parse_args()
    import ray

    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, configure_logging=False)
    with tempfile.TemporaryDirectory() as folder:
        epochs = Epochs(Path(folder), options.cell)
        rounds = max(4, options.rounds // 10) if options.quick else options.rounds
        found = interleave({"without": epochs.without, "restarts": epochs.with_restarts}, rounds)
        cells = epochs.restarts.figures()["restarts/cells"]
        epochs.session.close()
    ray.shutdown()
    clock = ratios(found["restarts"], found["without"])
    cores = ratios(epochs.per_cpu_s[True][1:], epochs.per_cpu_s[False][1:])
    figures: Figures = {"cells": cells}
    rows: list[tuple[str, str]] = []
    for name, label, shares in (("ratio", "the clock", clock), ("cpu_ratio", "the process's cores", cores)):
        for when, part in (("first", shares[: rounds // 4]), ("later", shares[rounds // 4 :])):
            these, row = median_row(f"{when}_{name}", f"{when} rounds, by {label}", part)
            figures |= these
            rows.append(row)
    for name, speeds in found.items():
        figures[f"{name}_steps_per_s"] = statistics.median(speeds)
        rows.append((name, f"{statistics.median(speeds):,.0f} steps/s"))
    report("steps/s with restarts over steps/s without", [*rows, ("cells", f"{cells:,.0f}")], figures, options.json)


if __name__ == "__main__":
    main()
