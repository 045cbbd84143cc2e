"""`zelda judge labels`: measure what ratings, compared pairs and both teach a reward model."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.console import overwrite_line, print_json, print_status, print_table
from cli.errors import FAILED, USAGE, CliError, end_sentence
from cli.output_paths import require_writable_file
from shared.process.whole_file import write_whole_file

if TYPE_CHECKING:
    from studies.judges.bank import Bank, BankSegment
    from studies.labels.bank_features import BankFeatures
    from studies.labels.teaching import TeachingRow

MIN_SEGMENTS = 20  # rated; with fewer the members have nothing to learn from


def labels(
    answers: Annotated[
        Path, typer.Argument(help="folder with answers of `zelda judge bench --half dev`", metavar="DIR")
    ],
    seeds: Annotated[int, typer.Option(min=1, max=100, help="trainings of each kind, with seeds from 0")] = 5,
    tested: Annotated[
        int | None, typer.Option(min=20, help="measure on the first N segments of the half test; default: all")
    ] = None,
    own_bank: Annotated[
        Path | None, typer.Option("--bank", help="the bank of the answers, if it is another one")
    ] = None,
    results: Annotated[Path | None, typer.Option(help="results file (JSON) to write")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the rows as JSON")] = False,
) -> None:
    """Train reward models on a judge's answers about the bank: ratings, pairs and both; compare how they order play.

    Asks no judge: first rate segments of the half dev (`zelda judge bench --half dev --limit N`), then compare pairs of
    the same segments (`... --limit N --pairs P --any-gain`). The models are measured on the half test, by the
    milestones that segments gained.
    """
    from studies.judges.answers import AnswersError, AnswersFile
    from studies.judges.bank import Bank, BankError
    from studies.judges.pairs import PairAnswers
    from studies.labels.bank_features import BankFeatures
    from studies.labels.teaching import label_bank, measure

    if results is not None:
        require_writable_file(results)
    try:
        bank = Bank.load() if own_bank is None else Bank.load(own_bank)
        rated = AnswersFile.load(answers, bank).of("plain")
        known = [one for one in bank.half("dev") if one.name in rated and rated[one.name].weighted is not None]
        test = bank.half("test")[:tested]
        if len(known) < MIN_SEGMENTS:
            raise CliError(
                USAGE,
                f"{answers} rates {len(known)} segments of the half dev, {MIN_SEGMENTS} are needed: ask with "
                "`zelda judge bench --half dev`.",
            )
        features = BankFeatures.open(answers.parent / "features.npz")
        _replay(features, bank, [*known, *test])
        compared = PairAnswers.open(answers).answers
        rows = measure(label_bank(bank, rated, compared, features, test), range(seeds), print_status)
    except (AnswersError, BankError) as error:
        raise CliError(FAILED, end_sentence(str(error))) from error
    document = {
        "answers": answers.name,
        "test_segments": len(test),
        "rows": {name: row.model_dump(mode="json") for name, row in rows.items()},
    }
    if results is not None:
        write_whole_file(results, f"{json.dumps(document, indent=1)}\n".encode())
        print_status(f"Wrote {results}.")
    if as_json:
        print_json(document)
        return
    title = f"what the labels in {answers.name} teach, on {len(test)} test segments"
    columns = ("labels", "questions", "accuracy", "seeds", "over ratings")
    print_table(title, columns, [_cells(name, row) for name, row in rows.items()])


def _replay(features: "BankFeatures", bank: "Bank", segments: list["BankSegment"]) -> None:
    """Add the features of the segments that lack them."""
    try:
        features.add(bank, segments, lambda done, of: overwrite_line(f"replayed {done} of {of} episodes"))
    finally:
        overwrite_line("")


def _cells(name: str, row: "TeachingRow") -> list[str]:
    seeds = f"{min(row.seeds):.3f} to {max(row.seeds):.3f}"
    return [name, str(row.questions), f"{row.accuracy:.3f}", seeds, _over(row.over_ratings)]


def _over(difference: tuple[float, float, float] | None) -> str:
    if difference is None:
        return "-"
    value, low, high = difference
    return f"{value:+.3f} ({low:+.3f} to {high:+.3f})"
