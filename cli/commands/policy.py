"""`zelda policy`: watch a trained policy play, or export it as a file that loads without this project."""

import asyncio
import json
import os
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.console import overwrite_line, print_json, print_line, print_status
from cli.errors import FAILED, USAGE, CliError
from cli.judging.judges_file import read_judges
from cli.judging.progress import JudgingProgress
from cli.output_paths import VIDEO, require_writable_file
from cli.run_arguments import parse_run_id
from cli.runs.options import Name, run_names
from cli.stack.signals import interrupt_on_signals
from cli.stored_runs import read_store
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig
from shared.process.whole_file import write_whole_file

if TYPE_CHECKING:
    from cli.policy.comments import Comment
    from cli.policy.play import PlayedEpisode, PlayOptions
    from cli.policy.policy_file import Policy
    from services.judge.config import JudgesFile
    from services.trainer.env.game_session import EpisodeReport

app = typer.Typer(help="Watch a trained policy play, evaluate it, or export it.", no_args_is_help=True)
Epoch = Annotated[int | None, typer.Option("--epoch", min=0, help="policy after this epoch; default: the newest")]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Best = Annotated[bool, typer.Option("--best", help="take the most probable action instead of sampling")]
RunOrFile = Annotated[
    str,
    typer.Argument(
        help="name of the run, or a file that `zelda policy export` wrote",
        metavar="RUN|FILE",
        autocompletion=run_names,
    ),
]
Rom = Annotated[Path | None, typer.Option(help="your own ROM image, for game=oracle-of-seasons")]
ANIMATION = ".gif"


@app.command()
def export(
    name: Name,
    to: Annotated[Path, typer.Option("--to", help="the .npz file to write")] = Path("policy.npz"),
    epoch: Epoch = None,
    as_json: Json = False,
) -> None:
    """Write the policy as one NumPy file, and print a program that uses it. The file needs only NumPy."""
    from cli.policy.exported_policy import SUFFIX
    from cli.policy.stored_policy import read_policy

    run = parse_run_id(name)
    require_writable_file(to, (SUFFIX,))
    policy, _ = read_store(lambda store: read_policy(store, run, epoch), run)
    write_whole_file(to, policy.to_bytes())
    if as_json:
        print_json({"file": str(to), **policy.about})
        return
    print_line(f"{to}: the policy of {run} after epoch {policy.about['epoch']}")
    program = policy.example.replace('"policy.npz"', json.dumps(str(to)))
    print_status(f"A program that uses it:\n\n{program}")


@app.command()
def play(
    source: RunOrFile,
    epoch: Epoch = None,
    video: Annotated[Path | None, typer.Option(help="write the play as an MP4 file, or as FILE.gif")] = None,
    speed: Annotated[
        int, typer.Option(min=1, max=1_000, metavar="N", help="show only every N-th step in the video: N times as fast")
    ] = 1,
    window: Annotated[
        bool, typer.Option("--window", help="show the play in a window, at the speed of the game")
    ] = False,
    steps: Annotated[int, typer.Option(min=1, max=1_000_000, help="maximum number of steps to play")] = 1_000,
    best: Best = False,
    seed: Annotated[int, typer.Option(min=0, help="seed of the game and of action sampling")] = 0,
    judges: Annotated[
        Path | None, typer.Option(help="let these judges comment on the play: YAML file with routes and judges")
    ] = None,
    rules: Annotated[bool, typer.Option("--rules", help="let the rules judge comment on the play")] = False,
    rom: Rom = None,
    as_json: Json = False,
) -> None:
    """Play one episode with the policy and print its result; --video or --window shows it.

    The comments of judges, on each segment of the run's length, are printed and stand below the video.
    """
    from cli.policy.play import PlayedEpisode

    if video is not None:
        require_writable_file(video, (*VIDEO, ANIMATION))
    file = read_judges(judges, rules=rules) if judges is not None or rules else None
    policy, config, options = _player(source, epoch, steps, best, seed, window, rom)
    run = RunId(policy.about["run"])
    playing = PlayedEpisode(policy, config, options)
    comments = [] if file is None else _comments(playing, file, run, policy.about["epoch"])
    if video is not None:
        _write_video(playing, video, config.frame_skip, comments, speed)
    elif file is None:
        deque(playing, maxlen=0)
    assert playing.report is not None  # the play above ends with it
    result = _result(playing.report, run, policy.about["epoch"], video)
    if as_json:
        print_json({**result, **({} if file is None else {"comments": [comment._asdict() for comment in comments]})})
        return
    for comment in comments:
        print_line(" | ".join((*comment.caption, *comment.reasons)))
    print_line(_sentence(result))
    if video is not None:
        print_line(str(video))


@app.command()
def evaluate(
    source: RunOrFile,
    epoch: Epoch = None,
    episodes: Annotated[int, typer.Option(min=1, max=100_000, help="number of episodes")] = 100,
    steps: Annotated[int, typer.Option(min=1, max=1_000_000, help="maximum number of steps of each episode")] = 10_000,
    best: Best = False,
    seed: Annotated[int, typer.Option(min=0, help="seed of the first episode; each has the next one")] = 0,
    rom: Rom = None,
    as_json: Json = False,
) -> None:
    """Play many episodes with the policy from the true start, on all cores, and print how they end."""
    from cli.policy.evaluate import played, summary

    policy, config, options = _player(source, epoch, steps, best, seed, False, rom)
    run = RunId(policy.about["run"])
    reports = []
    with interrupt_on_signals(), closing(played(policy, config, options, episodes)) as episode_reports:
        try:
            for report in episode_reports:
                reports.append(report)
                overwrite_line(f"{len(reports)} of {episodes} episodes, {sum(one.finished for one in reports)} finish")
        finally:
            overwrite_line("")
    found = {"run": str(run), "epoch": policy.about["epoch"], **summary(reports)}
    if as_json:
        print_json(found)
        return
    steps_of = "" if found["steps_to_finish"] is None else f", in {found['steps_to_finish']:,.0f} steps (median)"
    print_line(
        f"{run}, policy after epoch {found['epoch']}: {found['finished']} of {episodes} episodes finish the game "
        f"(95 % interval {found['finished_low']:.2f} to {found['finished_high']:.2f}){steps_of}; "
        f"{found['milestones_mean']} of {found['milestones_total']} milestones on average, {found['milestones_most']} "
        f"at most; deaths: {found['deaths']}"
    )


def _player(
    source: str, epoch: int | None, steps: int, best: bool, seed: int, window: bool, rom: Path | None
) -> tuple["Policy", RunConfig, "PlayOptions"]:
    """The policy of a run or file, the run's configuration, and how to play."""
    from cli.policy.play import PlayOptions
    from cli.stack.user_settings import find_rom, find_start_state, require_rom

    image = find_rom(os.environ, rom)
    policy, config = _read(source, epoch)
    require_rom(config.game, image)
    start = find_start_state(os.environ) if config.game != "bramble" else None
    return policy, config, PlayOptions(steps, best, seed, window, image, start)


def _read(source: str, epoch: int | None) -> tuple["Policy", RunConfig]:
    """The policy of a run or file, and the run's configuration."""
    from cli.policy.exported_policy import SUFFIX, read_exported
    from cli.policy.stored_policy import read_policy

    if source.endswith(SUFFIX):
        if epoch is not None:
            raise CliError(USAGE, f"--epoch {epoch}: a file holds the policy of one epoch; leave it out.")
        return read_exported(Path(source))
    run = parse_run_id(source)
    return read_store(lambda store: read_policy(store, run, epoch), run)


def _comments(playing: "PlayedEpisode", file: "JudgesFile", run: RunId, epoch: int) -> list["Comment"]:
    """What the judges say about the episode, which is played for it."""
    from cli.policy.comments import commented
    from shared.llm.port import RouteUnavailable

    segments = playing.segments(run, epoch)
    print_status(f"{', '.join(judge.name for judge in file.judges)} judge {len(segments)} segments.")
    try:
        return asyncio.run(commented(segments, file, JudgingProgress()))
    except RouteUnavailable as error:
        raise CliError(FAILED, f"{error}: start the server, or correct its address in the judges file.") from error
    finally:
        overwrite_line("")  # the next output starts on an empty line


def _write_video(
    playing: "PlayedEpisode", video: Path, frame_skip: int, comments: Sequence["Comment"], speed: int
) -> None:
    """The play as a video, each picture with the comment on its segment."""
    from services.exporter.adapters.animation import encode_gif
    from services.exporter.adapters.video import encode_mp4, step_ms

    notes = [comment.text for comment in comments for _ in range(comment.steps)]
    if comments and playing.report is not None:  # the last steps, where they are too few to be judged
        notes += notes[-1:] * (playing.report.steps - len(notes))
    pictures = islice(playing, 0, None, speed)
    if video.suffix.lower() == ANIMATION:
        write_whole_file(video, encode_gif(pictures, picture_ms=step_ms(frame_skip), notes=notes[::speed]))
    else:
        write_whole_file(video, encode_mp4(pictures, frame_skip=frame_skip, notes=notes[::speed]))


def _result(report: "EpisodeReport", run: RunId, epoch: int, video: Path | None) -> dict[str, Any]:
    result: dict[str, Any] = {"run": str(run), "epoch": epoch, "steps": report.steps, "rooms": report.rooms}
    result |= {"milestones": report.milestones, "milestones_total": report.milestones_total}
    return result | {"deaths": report.deaths, "finished": report.finished, "video": str(video) if video else None}


def _sentence(result: Mapping[str, Any]) -> str:
    end = "the game is finished" if result["finished"] else "the game is not finished"
    return (
        f"{result['run']}, policy after epoch {result['epoch']}: {result['steps']:,} steps, {result['rooms']} rooms, "
        f"{result['milestones']} of {result['milestones_total']} milestones, deaths: {result['deaths']}, {end}"
    )
