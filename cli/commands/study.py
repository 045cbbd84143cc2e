"""`zelda study`: compare ways of training over several seeds, and write a page with the result."""

import os
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from cli.console import print_json, print_line, print_status
from cli.errors import FAILED, USAGE, CliError
from cli.stack.lock import locked_directory
from cli.stack.signals import interrupt_on_signals
from cli.trial_processes import run_trials
from shared.contracts.base import first_problem
from shared.contracts.run import RunConfig, SamplingConfig, ShapingConfig
from studies.arms import ARMS
from studies.plan import InvalidStudy, StudyPlan, check_rewards, load_curves, parse_arms

app = typer.Typer(
    help="Train several arms over several seeds and compare them. The same command resumes an interrupted study."
)

ENVS = 16
BATCH = 2_048
SEGMENT_STEPS = 100  # a longer segment of these short episodes would show several things


# Without this setting, a Typer group rejects options after its argument.
@app.callback(invoke_without_command=True, context_settings={"allow_interspersed_args": True})
def study(
    world: Annotated[str, typer.Argument(help="Bramble world", metavar="WORLD")] = "garden",
    seeds: Annotated[int, typer.Option(help="seeds per arm; a claim needs at least 5")] = 5,
    arms: Annotated[str, typer.Option(help="arms to train, comma-separated")] = ",".join(ARMS),
    epochs: Annotated[int, typer.Option(help="epochs per trial")] = 12,
    epoch_steps: Annotated[int, typer.Option(min=BATCH, help="environment steps per epoch")] = 20_480,
    episode_length: Annotated[int, typer.Option(help="steps per episode")] = 400,
    frame_skip: Annotated[int, typer.Option(help="emulator frames per step")] = 12,
    rewards: Annotated[str, typer.Option(help="reward profile of all arms")] = "explore",
    segments: Annotated[int, typer.Option(min=1, help="maximum number of labelled segments per epoch")] = 60,
    mode: Annotated[str, typer.Option(help="how the reward model shapes: gain, potential or additive")] = "gain",
    coefficient: Annotated[float, typer.Option(help="weight of the shaping term")] = 2.0,
    conservatism: Annotated[float, typer.Option(help="how much ensemble disagreement lowers a value")] = 0.0,
    pooling: Annotated[str, typer.Option(help="what a label rates: the mean of a segment, or its gain")] = "gain",
    jobs: Annotated[int, typer.Option(min=0, help="number of concurrent trials; 0: one per core")] = 0,
    out: Annotated[Path | None, typer.Option(help="folder of the study; default: runs/study-WORLD")] = None,
    show: Annotated[bool, typer.Option("--show", help="compare the finished trials without training")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON")] = False,
) -> None:
    """Run all trials, each in its own process. The same command resumes an interrupted study."""
    folder = out or Path("runs") / f"study-{world.replace(':', '-')}"
    try:
        if not show:
            if mode == "none":
                raise CliError(USAGE, "--mode none disables shaping in every arm: choose gain, potential or additive.")
            config = RunConfig(
                world=world,
                epochs=epochs,
                epoch_steps=epoch_steps,
                episode_length=episode_length,
                segment_steps=SEGMENT_STEPS,
                frame_skip=frame_skip,
                rewards=check_rewards(rewards),
                env_runners=0,
                envs_per_runner=ENVS,
                batch_size=BATCH,
                sampling=SamplingConfig(budget=segments),
                shaping=ShapingConfig.model_validate(
                    {"mode": mode, "coefficient": coefficient, "conservatism": conservatism}
                ),
            )
            values = {"arms": parse_arms(arms), "seeds": seeds, "run": config, "pooling": pooling}
            _run_trials(folder, StudyPlan.model_validate(values), jobs or len(os.sched_getaffinity(0)))
        _show(folder, as_json)
    except ValidationError as error:
        raise CliError(USAGE, f"This study is not possible: {first_problem(error)}.") from error
    except InvalidStudy as error:
        raise CliError(USAGE, str(error)) from error


def _run_trials(folder: Path, plan: StudyPlan, jobs: int) -> None:
    with locked_directory(folder, "study", "wait for it"), interrupt_on_signals():
        run_trials(folder, plan.save_or_extend(folder), jobs)


def _show(folder: Path, as_json: bool) -> None:
    import json

    from studies.page import render_page
    from studies.summary import summarise, to_markdown

    plan = StudyPlan.load(folder)
    curves_ = load_curves(folder, plan)
    if not any(curves_.values()):
        raise CliError(FAILED, f"No trial in {folder} is finished yet.")
    result = summarise(plan, curves_)
    (folder / "result.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    (folder / "page.html").write_text(render_page(result, curves_, command(plan)), encoding="utf-8")
    if as_json:
        print_json(result)
        return
    print_line(to_markdown(result))
    print_status(f"Curves: {folder / 'page.html'}")


def command(plan: StudyPlan) -> str:
    """Return the command that repeats this study."""
    config = plan.run
    return (
        f"zelda study {config.world} --seeds {plan.seeds} --arms {','.join(plan.arms)} "
        f"--epochs {config.planned_epochs} --epoch-steps {config.epoch_steps} "
        f"--episode-length {config.episode_length} --frame-skip {config.frame_skip} "
        f"--rewards {config.rewards} --segments {config.sampling.budget} "
        f"--mode {config.shaping.mode} --coefficient {config.shaping.coefficient:g} "
        f"--conservatism {config.shaping.conservatism:g} --pooling {plan.pooling}"
    )
