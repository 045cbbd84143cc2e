"""Trackers of experiments: TensorBoard event files, MLflow, W&B. Each is imported only when it is used."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from shutil import rmtree
from typing import Any, Final, Protocol

from shared.contracts.ids import RunId

MLFLOW_RETRIES: Final = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
MLFLOW_BATCH: Final = 100  # parameters that MLflow takes in one request


class Tracker(Protocol):
    """Receives the figures of a run. Each figure is written once, or a later write replaces it."""

    def write(self, scalars: Mapping[str, float], step: int, time: datetime) -> None:
        """Write numbers at a step of the run."""

    def close(self) -> None:
        """Flush and end."""


class TensorBoardTracker:
    """Event files in one folder, which TensorBoard reads. Earlier event files there are replaced."""

    def __init__(self, folder: Path, config: Mapping[str, Any]) -> None:
        from tensorboardX import SummaryWriter

        for former in folder.glob("events.out.tfevents.*"):
            former.unlink()
        self._writer = SummaryWriter(str(folder))
        self._writer.add_text("configuration", "\n".join(f"    {name}: {value}" for name, value in config.items()))

    def write(self, scalars: Mapping[str, float], step: int, time: datetime) -> None:
        """Write numbers at a step of the run."""
        for name, value in scalars.items():
            self._writer.add_scalar(name, value, step, walltime=time.timestamp())
        self._writer.flush()

    def close(self) -> None:
        """Flush and end."""
        self._writer.close()


class MlflowTracker:
    """A run of an MLflow experiment. An earlier export of the same run is replaced."""

    def __init__(self, uri: str, experiment: str, run: RunId, config: Mapping[str, Any]) -> None:
        from mlflow.entities import Param
        from mlflow.tracking import MlflowClient

        self._client = MlflowClient(tracking_uri=uri)
        with _few_retries():
            found = self._client.get_experiment_by_name(experiment)
        number = found.experiment_id if found else self._client.create_experiment(experiment)
        for former in self._client.search_runs([number], f"tags.`mlflow.runName` = '{run}'"):
            self._client.delete_run(former.info.run_id)
        self._run = self._client.create_run(number, run_name=str(run)).info.run_id
        params = [Param(name, str(value)) for name, value in config.items()]
        for first in range(0, len(params), MLFLOW_BATCH):
            self._client.log_batch(self._run, params=params[first : first + MLFLOW_BATCH])

    def write(self, scalars: Mapping[str, float], step: int, time: datetime) -> None:
        """Write numbers at a step of the run."""
        from mlflow.entities import Metric

        at = round(time.timestamp() * 1000)
        self._client.log_batch(self._run, [Metric(name, value, at, step) for name, value in scalars.items()])

    def close(self) -> None:
        """Mark the run as ended."""
        self._client.set_terminated(self._run)


@contextmanager
def _few_retries() -> Iterator[None]:
    """Let MLflow give up within seconds during the body: it looks for an absent server for six minutes otherwise."""
    if os.environ.get(MLFLOW_RETRIES):  # the user's own number
        yield
        return
    os.environ[MLFLOW_RETRIES] = "1"
    try:
        yield
    finally:
        del os.environ[MLFLOW_RETRIES]


class WandbTracker:
    """An offline run of Weights & Biases in a folder; nothing leaves this machine until `wandb sync` sends it.

    An earlier offline run of the same name in the folder is replaced once the new one is complete.
    """

    STEPS: Final = "steps"

    def __init__(self, folder: Path, project: str, run: RunId, config: Mapping[str, Any]) -> None:
        import wandb

        # The file has the run's exact name. The folder's name ends in it, but `demo-1` ends in `1`, too.
        self._former = {file.parent for file in (folder / "wandb").glob(f"offline-run-*/run-{run}.wandb")}
        settings = wandb.Settings(
            mode="offline",
            root_dir=str(folder),
            silent=True,
            console="off",
            save_code=False,
            disable_git=True,
            x_disable_stats=True,  # figures of this process, not of the training
            x_disable_meta=True,
            x_disable_machine_info=True,
        )
        self._run = wandb.init(project=project, name=str(run), id=str(run), config=dict(config), settings=settings)
        # Figures of the judges come later than those of later play: W&B would drop them if its own step were used.
        self._run.define_metric("*", step_metric=self.STEPS)
        self.folder = Path(self._run.dir).parent

    def write(self, scalars: Mapping[str, float], step: int, time: datetime) -> None:
        """Write numbers at a step of the run."""
        self._run.log({**scalars, self.STEPS: step, "_timestamp": time.timestamp()})

    def close(self) -> None:
        """Flush, end, and remove earlier runs of this name.

        W&B's own process writes the file after `finish` has returned: wait until it has ended.
        """
        import wandb

        self._run.finish()
        wandb.teardown()
        for former in self._former:
            rmtree(former, ignore_errors=True)  # a second export at the same time may have removed it


def flat_config(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A run's configuration with dotted names, as `zelda run start --set` takes them."""
    found: dict[str, Any] = {}
    for name, value in config.items():
        found |= flat_config(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return found
