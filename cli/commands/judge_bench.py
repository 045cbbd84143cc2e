"""`zelda judge bench`: measure judges on a frozen bank of play whose progress is known."""

import asyncio
import re
from collections.abc import Coroutine, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import format_number, overwrite_line, print_json, print_line, print_status, print_table
from cli.errors import FAILED, USAGE, CliError, end_sentence
from cli.judging.judges_file import read_judges
from cli.output_paths import PICTURE, require_writable_file
from cli.stack.lock import locked_file
from cli.study.command import commit
from shared.process.whole_file import write_whole_file
from studies.plan import NOISY_ACCURACY

if TYPE_CHECKING:
    from services.judge.config import JudgesFile
    from studies.judges.answers import Answer, AnswersFile
    from studies.judges.bank import Bank, BankSegment, Half
    from studies.judges.pairs import PairAnswer
    from studies.judges.table import BenchRow
    from studies.judges.variants import Variant
    from studies.stats import Interval

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
RESERVED = ("length-only", "rules-noisy")
TITLES = ("judge", "segments", "pairs", "AUC", "several", "next three", "alpha", "flips", "ECE (before)", "s/segment")
FIGURES = {"pairs_accuracy": "pairs", "auc": "AUC"}


def bench(
    judges: Annotated[Path | None, typer.Option("--judges", help="YAML file with routes and judges")] = None,
    rules: Annotated[bool, typer.Option("--rules", help="measure the rules judge, and the baselines")] = False,
    half: Annotated[str, typer.Option(help="dev, for choosing prompts and models, or test, for the result")] = "dev",
    limit: Annotated[int | None, typer.Option(min=1, help="ask about the first N segments, a random sample")] = None,
    world: Annotated[str | None, typer.Option(help="ask about this world alone: labels for `zelda study`")] = None,
    variant: Annotated[
        str,
        typer.Option(help="what the judges read: plain, shuffled (lines of TOTALS), no-totals, planted (wrong totals)"),
    ] = "plain",
    pairs: Annotated[
        int | None, typer.Option(min=1, help="ask about this many pairs of segments instead, in both orders")
    ] = None,
    any_gain: Annotated[
        bool, typer.Option("--any-gain", help="also draw pairs of equal gain: labels for `zelda judge labels`")
    ] = False,
    name: Annotated[str | None, typer.Option(help="name of the row; default: the rubric of the judges file")] = None,
    slots: Annotated[int, typer.Option(min=1, max=1_000, help="number of segments judged concurrently")] = 1,
    accuracy: Annotated[
        float, typer.Option(min=0.5, max=1, help="accuracy to which rules-noisy is degraded")
    ] = NOISY_ACCURACY,
    out: Annotated[Path, typer.Option(help="folder with the answers of each row")] = Path("runs/bench"),
    own_bank: Annotated[
        Path | None, typer.Option("--bank", help="another bank, from python -m studies.judges.make_bank --out FILE")
    ] = None,
    results: Annotated[Path | None, typer.Option(help="results file (JSON) to write the rows into")] = None,
    plot: Annotated[Path | None, typer.Option(help="write a picture of the rows (PNG)")] = None,
    pack: Annotated[bool, typer.Option("--pack", help="also write the answers compressed, to publish them")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the rows as JSON")] = False,
) -> None:
    """Ask judges about recorded play whose progress is known, and compare their scores with it.

    No question is asked twice: the same command goes on where it was interrupted. Without --judges and --rules, it
    shows the rows of the answers so far.
    """
    from studies.judges.answers import AnswersError
    from studies.judges.bank import Bank, BankError
    from studies.judges.pairs import draw_pairs

    chosen, asks = _half(half), judges is not None or rules
    given = {"--limit": limit, "--world": world, "--name": name, "--pairs": pairs, "--any-gain": any_gain}
    _require_use({**given, "--variant": variant != "plain", "--slots": slots != 1}, asks=asks)
    _require_writable(results, plot)
    try:
        bank = Bank.load() if own_bank is None else Bank.load(own_bank)
        if asks:
            panel = read_judges(judges, rules=rules)
            kept = _open_answers(panel, name, out, bank)
            segments = _of_world(bank, bank.half(chosen), world)[:limit]
            if pairs is not None:
                _compare(bank, panel, draw_pairs(segments, pairs, any_gain=any_gain), kept)
            else:
                _ask(bank, panel, segments, _variant(variant), kept, slots)
        rows = _rows(bank, chosen, out, accuracy, pack=pack)
        if results is not None:
            _save(results, chosen, rows, out)
    except (AnswersError, BankError) as error:
        raise CliError(FAILED, end_sentence(str(error))) from error
    _show(chosen, rows, plot, as_json=as_json)


def _require_writable(results: Path | None, plot: Path | None) -> None:
    if results is not None:
        require_writable_file(results)
    if plot is not None:
        require_writable_file(plot, PICTURE)


def _require_use(options: Mapping[str, object], *, asks: bool) -> None:
    """CliError if one of these options is given and would be ignored."""
    given = [option for option, value in options.items() if value]
    if given and not asks:
        raise CliError(
            USAGE, f"{', '.join(given)}: only a command that asks judges uses it; add --judges FILE or --rules."
        )
    if "--any-gain" in given and "--pairs" not in given:
        raise CliError(USAGE, "--any-gain draws pairs: add --pairs N.")
    ignored = [option for option in ("--variant", "--slots") if option in given and "--pairs" in given]
    if ignored:
        raise CliError(USAGE, f"--pairs compares plain segments one pair at a time: leave out {', '.join(ignored)}.")


def _half(name: str) -> "Half":
    from studies.judges.bank import HALVES

    for half in HALVES:
        if half == name:
            return half
    raise CliError(USAGE, f"--half {name}: the bank has the halves {' and '.join(HALVES)}.")


def _of_world(bank: "Bank", segments: list["BankSegment"], world: str | None) -> list["BankSegment"]:
    worlds = sorted({bank.episodes[segment.episode].world for segment in segments})
    if world is not None and world not in worlds:
        raise CliError(USAGE, f"--world {world}: this half of the bank has {', '.join(worlds)}.")
    return [segment for segment in segments if world in (None, bank.episodes[segment.episode].world)]


def _variant(name: str) -> "Variant":
    from studies.judges.variants import VARIANTS

    for variant in VARIANTS:
        if variant == name:
            return variant
    raise CliError(USAGE, f"--variant {name}: use {', '.join(VARIANTS)}.")


def _open_answers(file: "JudgesFile", name: str | None, out: Path, bank: "Bank") -> "AnswersFile":
    from studies.judges.answers import AnswersFile

    title = name or file.rubric
    if not NAME.fullmatch(title) or title in RESERVED:
        raise CliError(USAGE, f"--name {title}: use lower-case letters, digits and hyphens, and no baseline's name.")
    return AnswersFile.open(out / title, file, bank)


def _ask(
    bank: "Bank",
    file: "JudgesFile",
    segments: list["BankSegment"],
    variant: "Variant",
    kept: "AnswersFile",
    slots: int,
) -> None:
    from studies.judges.asking import BankPanel

    known = sum(one.name in kept.of(variant) for one in segments)
    report = _Progress("segments", len(segments), known)
    _run(BankPanel(bank, file, slots).ask(segments, variant, kept, report.answered))


def _compare(
    bank: "Bank", file: "JudgesFile", drawn: list[tuple["BankSegment", "BankSegment"]], kept: "AnswersFile"
) -> None:
    from studies.judges.asking import BankPanel
    from studies.judges.pairs import PairAnswers

    answers = PairAnswers.open(kept.folder)
    report = _Progress("pairs", len(drawn), sum(not answers.lacks(*pair) for pair in drawn))
    _run(BankPanel(bank, file).compare(drawn, answers, report.compared))


def _run(work: Coroutine[None, None, None]) -> None:
    from shared.llm.port import RouteUnavailable

    try:
        asyncio.run(work)
    except RouteUnavailable as error:
        raise CliError(FAILED, f"{error}: the answers so far are kept; run the command again to go on.") from error
    finally:
        overwrite_line("")


class _Progress:
    """Counts answers on one line of a terminal."""

    def __init__(self, things: str, total: int, before: int) -> None:
        self._things, self._total, self._done, self._missing = things, total, before, 0
        print_status(f"Asking about {total - before} of {total} {things}; the others have answers.")

    def answered(self, answer: "Answer") -> None:
        """Count an answer about a segment."""
        self._count(answer.weighted is None, answer.seconds)

    def compared(self, answer: "PairAnswer") -> None:
        """Count an answer about a pair."""
        self._count(answer.label is None, answer.seconds)

    def _count(self, missing: bool, seconds: float) -> None:
        self._done += 1
        self._missing += missing
        overwrite_line(f"{self._done} of {self._total} {self._things}, {self._missing} abstained, last {seconds:.1f} s")


def _rows(bank: "Bank", half: "Half", out: Path, accuracy: float, *, pack: bool) -> dict[str, "BenchRow"]:
    from studies.judges.answers import AnswersFile, has_answers
    from studies.judges.pairs import PairAnswers, pair_row
    from studies.judges.results import RULES, baseline_rows, judge_row

    rows: dict[str, BenchRow] = {}
    folders = {folder: AnswersFile.load(folder, bank) for folder in sorted(out.glob("*")) if has_answers(folder)}
    for folder, kept in folders.items():
        if pack:
            print_status(f"Wrote {kept.pack()}.")
        compared = PairAnswers.open(folder).answers
        if compared and (row := pair_row(compared, bank.half(half))).pairs:
            rows[f"{folder.name}-pairs"] = row
        if not _answered(bank, half, kept):
            continue
        rows[folder.name] = judge_row(bank, half, kept, folders.get(out / RULES))
        if folder.name == RULES:
            rows |= baseline_rows(bank, half, kept, accuracy)
    if not rows:
        raise CliError(FAILED, f"{out} has no answers about the half {half}: add --rules or --judges FILE.")
    return rows


def _answered(bank: "Bank", half: "Half", kept: "AnswersFile") -> bool:
    return any(segment.name in kept.of("plain") for segment in bank.half(half))


def _save(file: Path, half: "Half", rows: dict[str, "BenchRow"], out: Path) -> None:
    from studies.judges.results import JudgeResults

    command = f"zelda judge bench --half {half} --out {out} --results {file}"
    with locked_file(file):
        known = JudgeResults.load(file) if file.exists() and file.stat().st_size else None
        if known is not None and known.half != half:
            raise CliError(USAGE, f"{file} holds rows of the half {known.half}: choose another file for {half}.")
        merged = {**(known.rows if known else {}), **rows}
        note = known.note if known else ""
        JudgeResults(command=command, date=date.today(), commit=commit(), half=half, note=note, rows=merged).save(file)
    print_status(f"Wrote {file}.")


def _show(half: "Half", rows: dict[str, "BenchRow"], plot: Path | None, *, as_json: bool) -> None:
    from studies.judges.chart import draw_rows

    if plot is not None:
        write_whole_file(plot, draw_rows(rows))
        print_status(f"Wrote {plot}.")
    if as_json:
        print_json({"half": half, "rows": {name: row.model_dump(mode="json") for name, row in rows.items()}})
    else:
        _print(half, rows)


def _print(half: "Half", rows: dict[str, "BenchRow"]) -> None:
    print_table(f"judges on the half {half} of the bank", TITLES, [_cells(name, row) for name, row in rows.items()])
    for name, row in rows.items():
        for figure, interval in (row.over_length or {}).items():
            print_line(f"{name}, {FIGURES[figure]} over length-only: {_interval(interval)}")
        for ablation, interval in row.ablations.items():
            print_line(f"{name}, {ablation}: {_interval(interval)}")


def _cells(name: str, row: "BenchRow") -> list[str]:
    return [
        name,
        str(row.segments),
        _interval(row.pairs_accuracy),
        _interval(row.auc),
        _interval(row.count_accuracy),
        _interval(row.next_accuracy),
        format_number(row.alpha),
        format_number(row.flip_rate),
        f"{format_number(row.ece)} ({format_number(row.ece_raw)})",
        format_number(row.seconds_per_segment, "{:.2f}"),
    ]


def _interval(interval: "Interval | None") -> str:
    if interval is None:
        return "-"
    value, low, high = interval
    return f"{value:.2f} ({low:.2f} to {high:.2f})"
