"""`zelda policy`: watch a trained policy play, or export it as a file that loads without this project."""

import os
from collections import deque
from pathlib import Path
from typing import Annotated

import typer

from cli.console import print_json, print_line, print_status
from cli.output_paths import require_writable_file
from cli.run_arguments import parse_run_id
from cli.runs.options import Name
from cli.stored_runs import read_store

app = typer.Typer(help="Watch a trained policy play, or export it.", no_args_is_help=True)
Epoch = Annotated[int | None, typer.Option("--epoch", min=0, help="policy after this epoch; default: the newest")]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
START_STATE = "ZELDA_DRIVER__START_STATE"


@app.command()
def export(
    name: Name,
    to: Annotated[Path, typer.Option("--to", help="the .npz file to write")] = Path("policy.npz"),
    epoch: Epoch = None,
    as_json: Json = False,
) -> None:
    """Write the policy as one NumPy file, and print a program that uses it. The file needs only NumPy."""
    from cli.policy.stored_policy import read_policy

    run = parse_run_id(name)
    require_writable_file(to)
    policy, _ = read_store(lambda store: read_policy(store, run, epoch), run)
    to.write_bytes(policy.to_bytes())
    if as_json:
        print_json({"file": str(to), **policy.about})
        return
    print_line(f"{to}: the policy of {run} after epoch {policy.about['epoch']}")
    print_status(f"A program that uses it:\n\n{policy.example.replace('policy.npz', str(to))}")


@app.command()
def play(
    name: Name,
    epoch: Epoch = None,
    video: Annotated[Path | None, typer.Option(help="write the play as an MP4 file")] = None,
    window: Annotated[
        bool, typer.Option("--window", help="show the play in a window, at the speed of the game")
    ] = False,
    steps: Annotated[int, typer.Option(min=1, max=1_000_000, help="maximum number of steps to play")] = 1_000,
    best: Annotated[bool, typer.Option("--best", help="take the most probable action instead of sampling")] = False,
    seed: Annotated[int, typer.Option(min=0, help="seed of the game and of action sampling")] = 0,
    rom: Annotated[Path | None, typer.Option(help="your own ROM image, for game=oracle-of-seasons")] = None,
    as_json: Json = False,
) -> None:
    """Play one episode with the policy and print its result; --video or --window shows it."""
    from cli.policy.play import PlayedEpisode, PlayOptions
    from cli.policy.stored_policy import read_policy
    from cli.stack.user_settings import find_rom, require_rom

    run = parse_run_id(name)
    if video is not None:
        require_writable_file(video)
    image = find_rom(os.environ, rom)
    policy, config = read_store(lambda store: read_policy(store, run, epoch), run)
    require_rom(config.game, image)
    start = Path(os.environ[START_STATE]) if START_STATE in os.environ else None
    playing = PlayedEpisode(policy, config, PlayOptions(steps, best, seed, window, image, start))
    if video is None:
        deque(playing, maxlen=0)
    else:
        from services.exporter.adapters.video import encode_mp4

        video.write_bytes(encode_mp4(playing, frame_skip=config.frame_skip))
    report = playing.report
    assert report is not None  # the loop ends with it
    result = {"run": str(run), "epoch": policy.about["epoch"], "steps": report.steps, "rooms": report.rooms}
    result |= {"milestones": report.milestones, "milestones_total": report.milestones_total}
    result |= {"died": report.died, "finished": report.finished, "video": str(video) if video else None}
    if as_json:
        print_json(result)
        return
    end = "the hero died" if report.died else "the game is finished" if report.finished else "out of steps"
    print_line(
        f"{run}, policy after epoch {result['epoch']}: {report.steps:,} steps, {report.rooms} rooms, "
        f"{report.milestones} of {report.milestones_total} milestones, {end}"
    )
    if video is not None:
        print_line(str(video))
