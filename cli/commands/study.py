"""`zelda study`: compare ways of training over several seeds, and write a page with the result."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from cli.console import print_json, print_line, print_status
from cli.errors import FAILED, USAGE, CliError
from cli.output_paths import require_directory
from cli.run_arguments import parse_fields, run_config
from cli.stack.lock import locked_directory, locked_file
from cli.stack.signals import interrupt_on_signals
from cli.study.advisers import with_advisers
from cli.study.command import BATCH, FIXED, command, commit, widen
from cli.study.labels import LabelledPlan, read_labels
from cli.trial_processes import run_trials
from shared.config.problems import first_problem
from shared.contracts.run import RunConfig
from shared.process.cores import usable_cores
from shared.process.whole_file import write_whole_file
from studies.arms import ARMS
from studies.episode_length import episode_length as length_of
from studies.options import parse_arms, parse_seeds, parse_worlds
from studies.plan import NOISY_ACCURACY, InvalidStudy, StudyPlan, Trial
from studies.results import RESULT_FILE, Results

app = typer.Typer(
    help="Train several arms over several seeds and compare them. The same command resumes an interrupted study."
)

DEFAULT_ARMS = ",".join(name for name, arm in ARMS.items() if arm.in_default_study)


OPTION_OF = {
    "world": "WORLD",
    "epochs": "--epochs",
    "episode_length": "--episode-length",
    "rewards": "--rewards",
    "shaping.mode": "--mode",
    "shaping.coefficient": "--coefficient",
    "shaping.conservatism": "--conservatism",
}
"""The options that set fields of the runs and leave the check of the values to them."""


# Without this setting, a Typer group rejects options after its argument.
@app.callback(invoke_without_command=True, context_settings={"allow_interspersed_args": True})
def study(
    world: Annotated[str, typer.Argument(help="Bramble world, or several with commas", metavar="WORLD")] = "garden",
    seeds: Annotated[str, typer.Option(help="per arm: 5 is 0 to 4; 1:4,7:9 is 1, 2, 3, 7, 8; a claim needs 10")] = "5",
    arms: Annotated[str, typer.Option(help="arms to train, comma-separated")] = DEFAULT_ARMS,
    epochs: Annotated[int, typer.Option(help="epochs per trial")] = 12,
    epoch_steps: Annotated[int, typer.Option(min=BATCH, help="environment steps per epoch")] = 20_480,
    episode_length: Annotated[int, typer.Option(min=0, help="steps per episode; 0: by the world's walk-through")] = 0,
    frame_skip: Annotated[int, typer.Option(min=1, max=60, help="emulator frames per step")] = 12,
    rewards: Annotated[str, typer.Option(help="reward profile of all arms but `events`")] = "explore",
    segments: Annotated[int, typer.Option(min=1, help="maximum number of labelled segments per epoch")] = 60,
    mode: Annotated[str, typer.Option(help="how the reward model shapes: gain, potential or additive")] = "gain",
    coefficient: Annotated[float, typer.Option(help="weight of the shaping term")] = 2.0,
    conservatism: Annotated[float, typer.Option(help="how much ensemble disagreement lowers a value")] = 0.0,
    pooling: Annotated[str, typer.Option(help="what a label rates: the mean of a segment, or its gain")] = "gain",
    labels: Annotated[
        Path | None,
        typer.Option(help="a language model's answers about the bank, for llm, rules-bank and llm-shuffled"),
    ] = None,
    noisy_accuracy: Annotated[
        float, typer.Option(min=0.5, max=1, help="accuracy on the bank to which rules-noisy is degraded")
    ] = NOISY_ACCURACY,
    planner: Annotated[
        Path | None, typer.Option(help="planner file with the models that advise `guided`; default: a rules server")
    ] = None,
    explored: Annotated[
        Path | None, typer.Option(help="folder of explored paths: a trial begins with its own, or adds it")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", "-s", help="a field of the runs, e.g. -s ppo.discount=0.998")
    ] = None,
    jobs: Annotated[int, typer.Option(min=0, help="number of concurrent trials; 0: one per core")] = 0,
    out: Annotated[Path | None, typer.Option(help="folder of the study; default: runs/study-WORLD")] = None,
    results: Annotated[
        Path | None, typer.Option(help="results file, whose trials are skipped; default: result.json in the folder")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="compare the finished trials without training")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON")] = False,
) -> None:
    """Run all trials, each in its own process. The same command resumes an interrupted study."""
    folder = out or Path("runs") / f"study-{world.replace(':', '-').replace(',', '-')}"
    file = results or folder / RESULT_FILE
    try:
        worlds = _known_worlds(world)
        if not show:
            values = {
                "epochs": epochs,
                "epoch_steps": epoch_steps,
                "frame_skip": frame_skip,
                "rewards": rewards,
                "sampling": {"milestones": False, "budget": segments},
                "shaping": {"mode": mode, "coefficient": coefficient, "conservatism": conservatism},
            }
            plan = study_plan(worlds, episode_length, values, set_ or [], pooling, seeds, arms)
            plan = _with_paths(with_advisers(plan, planner), explored)
            _run_trials(folder, file, read_labels(plan, labels, noisy_accuracy), jobs or usable_cores())
        _show(folder, file, worlds, as_json)
    except ValidationError as error:
        raise CliError(USAGE, f"This study is not possible: {first_problem(error)}.") from error
    except InvalidStudy as error:
        raise CliError(USAGE, str(error)) from error


def _known_worlds(names: str) -> tuple[str, ...]:
    """The worlds of WORLD; CliError for a name that no world has."""
    worlds = parse_worlds(names)
    for one in worlds:
        run_config({"world": one}, OPTION_OF)
    return worlds


def study_plan(
    worlds: tuple[str, ...],
    episode_length: int,
    values: dict[str, Any],
    pairs: list[str],
    pooling: str,
    seeds: str,
    arms: str,
) -> StudyPlan:
    """Return the plan that the options describe. `values` are fields of the runs, `pairs` replace some of them."""
    fields = parse_fields(pairs, base={**values, **FIXED, "world": worlds[0], "episode_length": episode_length})
    given_pairs = {pair.partition("=")[0] for pair in pairs}
    named = {field: option for field, option in OPTION_OF.items() if field not in given_pairs}
    given = fields.pop("episode_length")
    # Before the walk-throughs, which would fail with a traceback.
    checked = run_config(fields if given == 0 else {**fields, "episode_length": given}, named)
    _refuse(fields, checked, worlds)
    lengths = [given or length_of(one, checked.frame_skip) for one in worlds]
    run = run_config({**fields, "episode_length": lengths[0], "seed": 0}, named)
    return StudyPlan.model_validate(
        {
            "worlds": worlds,
            "episode_lengths": lengths,
            "arms": parse_arms(arms),
            "seeds": parse_seeds(seeds),
            "run": run,
            "pooling": pooling,
        }
    )


def _with_paths(plan: StudyPlan, explored: Path | None) -> StudyPlan:
    """The plan with its folder of explored paths; CliError if it is a file."""
    if explored is None:
        return plan
    require_directory(explored)
    return plan.model_copy(update={"explored": str(explored)})


def _refuse(fields: dict[str, Any], checked: RunConfig, worlds: tuple[str, ...]) -> None:
    """Refuse fields that a study sets itself, or without which it measures nothing. `checked` is what they mean."""
    if fields["world"] != worlds[0] or "seed" in fields:
        raise CliError(USAGE, "--set world and --set seed: name worlds as WORLD, and seeds by --seeds.")
    if checked.shaping.mode == "none":
        raise CliError(USAGE, "--mode none disables shaping in every arm: choose gain, potential or additive.")
    if checked.eval_interval == 0:
        raise CliError(USAGE, "--set eval_interval=0 measures nothing: set 1, or another number of epochs.")
    if checked.labels.source != "ratings":
        raise CliError(USAGE, "--set labels.source: a study's arms learn from ratings; compare labels by judge labels.")
    if checked.starts:
        raise CliError(USAGE, "--set starts: the trials of a study begin at the true start.")
    if checked.planner.mode != "none" or checked.guidance.mode != "none":
        raise CliError(USAGE, "--set planner.mode and guidance.mode: the arms planner and guided set them; use --arms.")
    if "rnd" in fields:
        raise CliError(USAGE, "--set rnd: every arm sets it; choose arms by --arms.")


def _run_trials(folder: Path, file: Path, labelled: LabelledPlan, jobs: int) -> None:
    """Train what neither folder nor results file has; write the results file after each trial."""
    plan = labelled.plan
    with locked_directory(folder, "study", "wait for it"), interrupt_on_signals():
        plan.save_or_extend(folder)
        labelled.record(folder)
        version = commit()

        def finished(_: Trial) -> None:
            _save(file, plan, folder, version)

        try:
            run_trials(folder, plan, jobs, _save(file, plan, folder, version).curves(), finished)
        except KeyboardInterrupt:
            print_status("Stopped. The same command resumes each trial from its last checkpoint.")
            raise


def _save(file: Path, plan: StudyPlan, folder: Path, version: str) -> Results:
    """Add the folder's finished trials, of this version of the code, to the results file; return what it holds."""
    with locked_file(file):  # read again each time: another command may have added trials
        cores = os.cpu_count() or 1
        kept = Results.open(file, plan, command(plan), version, cores)
        kept.add(plan.load_curves(folder), version, cores)
        kept.command = command(widen(plan, kept.curves(), kept.labels))
        kept.save(file)
    return kept


def _show(folder: Path, file: Path, worlds: tuple[str, ...], as_json: bool) -> None:
    """Compare the finished trials of folder and results file; InvalidStudy if either holds another study."""
    from studies.report.page import render_page
    from studies.report.tables import to_markdown
    from studies.report.verdict import verdict
    from studies.summary import summarise

    plan = StudyPlan.load(folder)
    if set(plan.worlds) != set(worlds):
        names = ",".join(plan.worlds)
        raise InvalidStudy(
            f"{folder} contains a study of {names}: write `zelda study {names}`, or choose another folder."
        )
    kept = Results.open(file, plan, command(plan), commit(), os.cpu_count() or 1)
    curves = {**kept.curves(), **plan.load_curves(folder)}
    if not curves:
        raise CliError(FAILED, f"No trial in {folder} is finished yet.")
    result = summarise(curves)
    write_whole_file(folder / "page.html", render_page(result, curves, plan.steps, command(plan)).encode())
    if as_json:
        print_json(result)
        return
    print_line(to_markdown(result))
    for line in verdict(result, plan.steps):
        print_line(f"- {line}")
    print_status(f"Curves: {folder / 'page.html'}")
