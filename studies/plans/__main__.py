"""Entry point: `python -m studies.plans` asks models for plans in situations of Bramble, and carries the plans out."""

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from services.trainer.planning.planner_file import PlannerFile, load_planner_file
from shared.config.settings import LogSettings
from shared.config.yaml_document import ConfigError
from shared.process.cores import usable_cores
from shared.telemetry.logging import setup_logging
from studies.asked_models import rules_server
from studies.plan import InvalidStudy
from studies.plans.figures import PlanRow
from studies.plans.measure import measure, order_texts
from studies.plans.models import AskedModels, ModelAway, ReplyFile
from studies.plans.play import PlayedAnswer
from studies.plans.results import PlannerResults
from studies.plans.situations import stage

SITUATIONS = 40
NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,39}")
NAME_RULE = "up to 40 lower-case letters, digits, dots and hyphens"
DOUBLES = {"rules": (), "obeying": ("--obey-texts",)}
"""The rules server as a planner, and one that obeys every text of the game."""


def main(argv: list[str]) -> int:
    """Measure one planner; return 1 if it gives no answers, 2 for a wrong request."""
    options = _parser().parse_args(argv)
    setup_logging("plans", LogSettings(level="error"))
    try:
        _saved(options.results)  # a damaged file is refused before the first question
        with _planner(options) as (name, file):
            row = _measure(name, file, options)
        results = _saved(options.results)  # another command may have added its row meanwhile
        results.rows[name] = row
        results.save(options.results)
    except ModelAway as error:
        sys.stderr.write(f"{error}.\n")
        return 1
    except (ConfigError, InvalidStudy) as error:
        sys.stderr.write(f"{str(error).rstrip('.')}.\n")
        return 2
    sys.stdout.write(f"{PlannerResults(rows={name: row}).tables()}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m studies.plans",
        description="Ask models for plans and suggestions in situations of Bramble, carry them out in the emulator, "
        "and report what came of them. Replies are kept: the same command goes on where it was interrupted.",
    )
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--planner", type=Path, metavar="FILE", help="planner file; its routes say what is asked")
    chosen.add_argument("--double", choices=sorted(DOUBLES), help="a rules server instead of a model")
    parser.add_argument("--name", type=_name, help="name of the row; default: the double, or the planner file's name")
    parser.add_argument("--situations", type=_count(1), default=SITUATIONS, help="situations of each mode, at most")
    parser.add_argument("--texts", type=_count(0), default=len(order_texts()), help="texts with orders; 0: none")
    parser.add_argument("--out", type=Path, default=Path("runs/plans"), help="folder of the kept replies")
    parser.add_argument("--results", type=Path, default=Path("runs/plans/planner.json"), help="results file")
    return parser


def _saved(file: Path) -> PlannerResults:
    return PlannerResults.load(file) if file.exists() else PlannerResults()


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"a name has {NAME_RULE}")
    return text


def _count(least: int) -> Callable[[str], int]:
    """Reads a number from `least` on."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} on")
        return int(text)

    return read


@contextmanager
def _planner(options: argparse.Namespace) -> Iterator[tuple[str, PlannerFile]]:
    """The name of the row and the planner file, with a running server for a double."""
    if options.planner is not None:
        name = options.name or options.planner.stem.lower()
        if not NAME.fullmatch(name):
            raise InvalidStudy(f"{options.planner}: its name cannot be a row's, which has {NAME_RULE}: use --name")
        yield name, load_planner_file(options.planner, "")
        return
    with rules_server(*DOUBLES[options.double]) as url:
        yield options.name or options.double, load_planner_file(None, url)


def _measure(name: str, file: PlannerFile, options: argparse.Namespace) -> PlanRow:
    done = 0

    def report(what: str, played: PlayedAnswer) -> None:
        nonlocal done
        done += 1
        verdict = "success" if played.success else "no success" if played.valid else "no valid reply"
        sys.stderr.write(f"{done} {what} {played.situation}: {verdict}, {played.seconds:.1f} s\n")

    kept = ReplyFile(options.out / f"{name}.jsonl")
    with stage() as made, AskedModels(file, kept) as models:
        modes, orders = measure(made, models, file, options.situations, order_texts()[: options.texts], report)
    return PlanRow(
        command=_command(name, options),
        date=date.today().isoformat(),
        cores=usable_cores(),
        models=tuple(sorted({route.model for route in file.routes.values()})),
        modes=modes,
        orders=orders,
    )


def _command(name: str, options: argparse.Namespace) -> str:
    planner = f"--double {options.double}" if options.planner is None else f"--planner {options.planner}"
    named = "" if name == options.double else f" --name {name}"
    texts = "" if options.texts == len(order_texts()) else f" --texts {options.texts}"
    asked = f"{planner}{named} --situations {options.situations}{texts}"
    return f"python -m studies.plans {asked} --results {options.results}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
