"""`zelda explore`: fill an archive of states without a network."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.console import format_duration, overwrite_line, print_json, print_line, print_status
from cli.errors import FAILED, USAGE, CliError
from cli.output_paths import VIDEO, require_directory, require_writable_file
from cli.run_arguments import run_config
from cli.stack.lock import locked_directory, locked_file
from cli.stack.signals import interrupt_on_signals
from cli.study.command import commit
from shared.process.cores import usable_cores
from studies.whole_file import write_whole

if TYPE_CHECKING:
    from services.trainer.exploration.exploration import Exploration, ExplorationPlan
    from services.trainer.exploration.result import ExplorationResult, ExplorationResults

app = typer.Typer(help="Fill an archive of states with random options. The same command continues an exploration.")

ARCHIVE_FILE = "archive.sqlite"
RESULT_FILE = "result.json"
SELECTIONS = ("novelty", "random")  # judges need a run's reward model
OPTIONS = ("room", "sticky")
REPORTED_EVERY_S = 60.0
VIDEO_SCALE = 3


# Without this setting, a Typer group rejects options after its argument.
@app.callback(invoke_without_command=True, context_settings={"allow_interspersed_args": True})
def explore(
    world: Annotated[str, typer.Argument(help="Bramble world: garden, vale, realm or wild:SEED", metavar="WORLD")],
    steps: Annotated[
        int, typer.Option(min=1, help="steps to explore in all; more continue an exploration")
    ] = 1_000_000,
    seed: Annotated[int, typer.Option(min=0, help="seed of selection, options and the game")] = 0,
    jobs: Annotated[int, typer.Option(min=0, help="processes that play; 0: one per core; changes only the speed")] = 0,
    selection: Annotated[str, typer.Option(help="how cells to return to are drawn: novelty or random")] = "novelty",
    options: Annotated[
        str, typer.Option(help="what is tried: room (what the room offers, and random buttons) or sticky (these alone)")
    ] = "room",
    cell: Annotated[int, typer.Option(min=1, max=15, help="tiles across a cell of the archive")] = 4,
    frame_skip: Annotated[int, typer.Option(min=1, max=60, help="emulator frames per step")] = 4,
    out: Annotated[Path | None, typer.Option(help="folder; default: runs/explore-WORLD-SEED")] = None,
    results: Annotated[
        Path | None, typer.Option(help="results file, also of other explorations; default: result.json in the folder")
    ] = None,
    video: Annotated[
        Path | None, typer.Option(help="write the path with the most milestones as a video (MP4)", metavar="FILE")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON")] = False,
) -> None:
    """Explore a world from its true start and from cells found before. Milestones are only reported."""
    if selection not in SELECTIONS:
        raise CliError(USAGE, f"--selection {selection}: choose from {', '.join(SELECTIONS)}.")
    if options not in OPTIONS:
        raise CliError(USAGE, f"--options {options}: choose from {', '.join(OPTIONS)}.")
    folder = out or Path("runs") / f"explore-{world.replace(':', '-')}-{seed}"
    require_directory(folder)
    file = results or folder / RESULT_FILE
    if results is not None:
        require_writable_file(results)
    if video is not None:
        require_writable_file(video, VIDEO)
    _read(file)
    run_config({"world": world}, {"world": "WORLD"})  # names a misspelt world in one sentence
    with locked_directory(folder, "exploration", "wait for it"), interrupt_on_signals():
        plan = _plan(world, seed, selection, options, cell, frame_skip)
        result, filmed = _explore(folder, (file, video), plan, steps, jobs or usable_cores())
    if as_json:
        print_json(result.model_dump(mode="json"))
    else:
        _print_result(result, folder / ARCHIVE_FILE, file)
    if video is not None and not filmed:
        raise CliError(
            FAILED, f"{video} is not written: no path of the archive reaches a milestone yet. Explore more steps."
        )


def _plan(world: str, seed: int, selection: Any, options: str, cell: int, frame_skip: int) -> "ExplorationPlan":
    from services.trainer.exploration.exploration import ExplorationPlan
    from services.trainer.exploration.options import OptionMix
    from services.trainer.exploration.rollout import RolloutPlan
    from services.trainer.exploration.room_options import RoomMix

    mix = RoomMix() if options == "room" else OptionMix()
    return ExplorationPlan(world, seed, selection, rollout=RolloutPlan(frame_skip, tiles_per_cell=cell, mix=mix))


def _explore(
    folder: Path, files: tuple[Path, Path | None], plan: "ExplorationPlan", steps: int, jobs: int
) -> "tuple[ExplorationResult, bool]":
    """Explore, and write the files: the result, and the video if it is wanted. Return whether there is a video."""
    from services.trainer.exploration.archive_file import ArchiveFile
    from services.trainer.exploration.exploration import Exploration
    from services.trainer.exploration.workers import RolloutWorkers
    from shared.game.emulator.start import true_start

    game = plan.open_game()
    archive = ArchiveFile(folder / ARCHIVE_FILE, {**plan.facts(), "rom": game.digest})
    try:
        exploration = Exploration(plan, true_start(game).state, archive)
        names = [milestone.name for milestone in game.milestones]
        watch = _ProgressLine(exploration, steps, len(names))
        if exploration.progress.steps < steps:
            with RolloutWorkers(jobs, plan) as workers:
                try:
                    exploration.run(workers, steps, watch.show)
                finally:
                    overwrite_line("")
        result = _save(exploration, names, files[0], jobs)
        return result, files[1] is not None and _film(exploration, files[1])
    except KeyboardInterrupt:
        print_status("Stopped. The same command continues with the last whole round.")
        raise
    finally:
        archive.close()


def _film(exploration: "Exploration", file: Path) -> bool:
    """Write the best path as a video; return False if no path reaches a milestone."""
    from services.exporter.adapters.video import VideoFile

    path = exploration.best_path()
    if not any(part.actions for part in path):
        return False
    with VideoFile(file, VIDEO_SCALE) as video:
        video.add(exploration.pictures(path), exploration.plan.rollout.frame_skip)
    print_status(f"Wrote {file}.")
    return True


def _read(file: Path) -> "ExplorationResults":
    """The results in the file so far; CliError if it holds something else."""
    from pydantic import ValidationError

    from services.trainer.exploration.result import ExplorationResults

    try:
        return ExplorationResults.model_validate_json(file.read_bytes()) if file.exists() else ExplorationResults()
    except ValidationError as error:
        raise CliError(USAGE, f"{file} is not a file of explorations: name another one with --results.") from error


def _save(exploration: "Exploration", milestones: list[str], file: Path, jobs: int) -> "ExplorationResult":
    """Write the result to its file, beside those of other explorations."""
    from services.trainer.exploration.result import result_of

    plan = exploration.plan
    origin = {
        "command": f"zelda explore {plan.world} --seed {plan.seed} --steps {exploration.progress.steps} "
        f"--selection {plan.selection} --options {plan.rollout.options} --cell {plan.rollout.tiles_per_cell} "
        f"--frame-skip {plan.rollout.frame_skip}",
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count() or 1,
        "jobs": jobs,
    }
    result = result_of(exploration, milestones, origin)
    with locked_file(file):
        kept = _read(file)
        if (known := kept.same(result)) is not None:
            return known  # nothing was explored since: its date, commit and cores are those of the exploration
        kept.add(result)
        write_whole(file, kept.model_dump_json(indent=1) + "\n")
    return result


def _print_result(result: "ExplorationResult", archive: Path, file: Path) -> None:
    total = len(result.milestones)
    print_line(f"{result.world}, seed {result.seed}: {result.steps:,} steps in {format_duration(result.wall_s)}")
    print_line(f"cells {result.cells:,}   entries {result.entries:,}   rooms {result.rooms}   deaths {result.deaths:,}")
    print_line(f"milestones in the archive: {result.reached} of {total}; on one path: {result.best_path}")
    for milestone in sorted(result.milestones, key=lambda one: (one.steps is None, one.steps or 0)):
        when = "-" if milestone.steps is None else f"{milestone.steps:,}"
        print_line(f"  {when:>12}  {milestone.name}")
    print_status(f"Archive: {archive}   result: {file}")


class _ProgressLine:
    """Shows how far the exploration is: on a terminal in one line, otherwise a line each minute."""

    def __init__(self, exploration: "Exploration", steps: int, milestones: int) -> None:
        self._exploration, self._steps, self._milestones = exploration, steps, milestones
        self._began_at, self._began_steps = exploration.progress.wall_s, exploration.progress.steps
        self._said_at = self._began_at

    def show(self) -> None:
        """Show the present state; called after each round."""
        progress, archive = self._exploration.progress, self._exploration.archive
        played, passed = progress.steps - self._began_steps, progress.wall_s - self._began_at
        speed = played / max(passed, 1e-9)
        left = max(0, self._steps - progress.steps) / max(speed, 1e-9)
        text = (
            f"{progress.steps:,} of {self._steps:,} steps, {speed:,.0f} steps/s, {format_duration(left)} left; "
            f"{len(archive):,} cells, {len(archive.rooms())} rooms, {len(progress.reached_at)} of "
            f"{self._milestones} milestones"
        )
        overwrite_line(text)
        if progress.wall_s - self._said_at > REPORTED_EVERY_S and not sys.stderr.isatty():
            self._said_at = progress.wall_s
            print_status(text)
