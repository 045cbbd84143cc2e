"""`python -m services.trainer.driver --run RUN`: the driver of one run."""

import argparse
import sys
import uuid

import structlog

from services.trainer.documents import DriverName
from services.trainer.driver.blocking_store import BlockingStore
from services.trainer.driver.driver import Driver
from services.trainer.driver.driver_store import DriverStore
from services.trainer.driver.evaluation import Evaluation
from services.trainer.driver.session import TrainingSession
from services.trainer.driver.session_factory import create_evaluation, create_session, stop_ray
from services.trainer.rl.session_config import TrainingSessionConfig, UnplayableRun
from services.trainer.settings import DriverSettings
from shared.config.configure import EXIT_CONFIG, read_settings
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig
from shared.errors import ZeldaError
from shared.process import failpoints
from shared.process.exits import flush_and_exit
from shared.store.open import open_store
from shared.telemetry.logging import setup_logging

log = structlog.get_logger(__name__)

EXIT_FAILED = 1  # another driver may succeed; after EXIT_CONFIG none will


def main(argv: list[str] | None = None) -> int:
    """Read the settings from the environment and the run from the arguments, and train. Return the exit code."""
    arguments = _parser().parse_args(argv)
    settings, problems = read_settings(DriverSettings)
    if settings is None or problems:
        sys.stderr.write("".join(f"driver: {problem}\n" for problem in problems))
        return EXIT_CONFIG
    setup_logging("driver", settings.log)
    failpoints.arm()
    name = arguments.name or uuid.uuid4().hex[:12]
    structlog.contextvars.bind_contextvars(run=str(arguments.run), driver=name)
    store = BlockingStore(open_store(settings.store))

    def make(run: RunId, config: RunConfig) -> tuple[TrainingSession, Evaluation]:
        training = TrainingSessionConfig.of(run, config, settings.driver, settings.store)
        return create_session(training, settings.driver), create_evaluation(training)

    driver = Driver(DriverStore(store, arguments.run, name), settings.driver, make, arguments.parent)
    driver.listen_for_signals()
    failure: ZeldaError | None = None
    try:
        driver.run(arguments.former)
        log.info("driver exited", reason=driver.heartbeat.exit_reason or "idle")
    except UnplayableRun as error:
        failure = error
    except ZeldaError as error:
        log.exception("driver failed")
        failure = error
    store.close()
    stop_ray()
    return 0 if failure is None else _report(failure)


def _report(failure: ZeldaError) -> int:
    """Write the failure as the last line of the log, where the service reads the reason; return the exit code."""
    sys.stderr.write(f"driver: {failure}\n")
    return EXIT_CONFIG if isinstance(failure, UnplayableRun) else EXIT_FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m services.trainer.driver", description=__doc__)
    parser.add_argument("--run", type=RunId, required=True, help="the run to train")
    parser.add_argument("--name", type=DriverName, help="name of this driver; default: a random one")
    parser.add_argument("--former", type=DriverName, help="name of a driver of this run that is known to have ended")
    parser.add_argument(
        "--parent", type=int, help="process id of the service; the driver exits when it is no longer its parent"
    )
    return parser


if __name__ == "__main__":
    flush_and_exit(main())
