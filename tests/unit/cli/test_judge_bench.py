"""`zelda judge bench`: asks judges about a bank, goes on where it stopped, and writes the results file."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from cli import errors
from cli.commands.judge import app
from cli.errors import CliError
from services.judge.runtime import JudgeRuntime
from studies.judges.answers import plain
from studies.judges.bank import Bank
from studies.judges.chart import draw_rows
from studies.judges.table import BenchRow
from tests.servers import free_ports
from tests.unit.studies.small_bank import small_bank

ABSENT = """\
rubric: silent
routes: {{near: {{url: 'http://127.0.0.1:{port}/v1', attempts: 1}}}}
judges: [{{name: one, route: near, model: none, dimensions: [progress], votes: [3]}}]
"""


def bench(folder: Path, *words: str) -> Result:
    """Run the command on a small bank, with its answers in this folder."""
    bank = folder / "small.npz"
    if not bank.exists():
        small_bank().save(bank)
    return CliRunner().invoke(app, ["bench", "--bank", str(bank), "--out", str(folder / "out"), *words])


def problem(result: Result) -> CliError:
    """The sentence of a command that failed."""
    assert isinstance(result.exception, CliError), result.output
    return result.exception


def test_rules_are_asked_once_and_written_to_the_results(tmp_path: Path) -> None:
    file = tmp_path / "judges.json"
    first = bench(tmp_path, "--rules", "--results", str(file), "--pack")
    assert first.exit_code == 0, first.output
    rows = json.loads(file.read_text())["rows"]
    assert rows["rules"]["segments"] == 1
    assert rows.keys() == {"rules", "length-only"}
    answers = plain(tmp_path / "out" / "rules").read_bytes()
    assert bench(tmp_path, "--rules").exit_code == 0
    assert plain(tmp_path / "out" / "rules").read_bytes() == answers


def test_the_rows_become_a_picture_with_a_line_for_each_judge(tmp_path: Path) -> None:
    picture = tmp_path / "judges.png"
    assert bench(tmp_path, "--rules", "--plot", str(picture)).exit_code == 0
    unmeasured = BenchRow(segments=0, episodes=0)
    more = io.BytesIO(draw_rows(dict.fromkeys("abc", unmeasured)))
    with Image.open(picture) as two_judges, Image.open(more) as three_judges:
        assert two_judges.format == three_judges.format == "PNG"
        assert two_judges.width == three_judges.width
        assert two_judges.height < three_judges.height


def test_one_world_can_be_asked_about_alone(tmp_path: Path) -> None:
    shown = bench(tmp_path, "--rules", "--world", "garden", "--json")
    assert json.loads(shown.stdout)["rows"]["rules"]["segments"] == 1


def test_other_variants_are_asked_on_top(tmp_path: Path) -> None:
    assert bench(tmp_path, "--rules").exit_code == 0
    shown = bench(tmp_path, "--rules", "--variant", "shuffled", "--json")
    assert json.loads(shown.stdout)["rows"]["rules"]["segments"] == 1
    assert len(plain(tmp_path / "out" / "rules").read_text().splitlines()) == 3


def test_a_silent_route_ends_the_command_and_keeps_the_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[JudgeRuntime] = []
    close = JudgeRuntime.close

    async def watched(runtime: JudgeRuntime) -> None:
        closed.append(runtime)
        await close(runtime)

    monkeypatch.setattr(JudgeRuntime, "close", watched)
    judges = tmp_path / "judges.yaml"
    judges.write_text(ABSENT.format(port=free_ports(1)[0]))
    error = problem(bench(tmp_path, "--judges", str(judges)))
    assert error.code == errors.FAILED
    assert "the answers so far are kept; run the command again to go on" in str(error)
    assert len(closed) == 1


def test_play_that_differs_from_the_bank_ends_the_command_with_a_sentence(tmp_path: Path) -> None:
    bank = small_bank()
    Bank(bank.episodes, tuple(replace(one, digest="0" * 64) for one in bank.segments)).save(tmp_path / "small.npz")
    error = problem(bench(tmp_path, "--rules"))
    assert error.code == errors.FAILED
    assert "another course than when the bank was made" in str(error)


def test_answers_about_another_bank_are_not_counted(tmp_path: Path) -> None:
    assert bench(tmp_path, "--rules").exit_code == 0
    bank = small_bank()
    Bank(bank.episodes, tuple(replace(one, digest="0" * 64) for one in bank.segments)).save(tmp_path / "small.npz")
    for words in ([], ["--rules"]):
        assert "answers about another bank" in str(problem(bench(tmp_path, *words)))


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--half", "third"], errors.USAGE, "--half third: the bank has the halves dev and test."),
        (["--rules", "--variant", "odd"], errors.USAGE, "--variant odd: use plain, shuffled, no-totals, planted."),
        (["--rules", "--world", "atlantis"], errors.USAGE, "--world atlantis: this half of the bank has garden."),
        (["--rules", "--name", "length-only"], errors.USAGE, "--name length-only: use lower-case letters"),
        ([], errors.FAILED, "has no answers about the half dev: add --rules or --judges FILE."),
        (
            ["--world", "garden", "--limit", "9"],
            errors.USAGE,
            "--limit, --world: only a command that asks judges uses it",
        ),
        (["--rules", "--any-gain"], errors.USAGE, "--any-gain draws pairs: add --pairs N."),
        (["--rules", "--pairs", "5", "--variant", "shuffled"], errors.USAGE, "pair at a time: leave out --variant."),
        (["--rules", "--pairs", "5", "--slots", "2"], errors.USAGE, "pair at a time: leave out --slots."),
    ],
)
def test_a_wrong_option_gets_one_sentence(tmp_path: Path, words: list[str], code: int, sentence: str) -> None:
    error = problem(bench(tmp_path, *words))
    assert error.code == code
    assert sentence in str(error)


def test_results_of_two_halves_do_not_mix(tmp_path: Path) -> None:
    file = tmp_path / "judges.json"
    assert bench(tmp_path, "--rules", "--results", str(file)).exit_code == 0
    error = problem(bench(tmp_path, "--rules", "--half", "test", "--results", str(file)))
    assert "holds rows of the half dev: choose another file for test" in str(error)


def test_pairs_are_compared_in_both_orders(tmp_path: Path) -> None:
    bank = small_bank()
    episodes = tuple(replace(one, half="dev") for one in bank.episodes)
    Bank(episodes, (bank.segments[0], replace(bank.segments[1], gain=1))).save(tmp_path / "small.npz")
    shown = bench(tmp_path, "--rules", "--pairs", "5", "--json")
    row = json.loads(shown.stdout)["rows"]["rules-pairs"]
    assert (row["pairs"], row["segments"], row["abstained"]) == (1, 2, 0)
    answers = (tmp_path / "out" / "rules" / "pairs.jsonl").read_bytes()
    assert bench(tmp_path, "--rules", "--pairs", "5").exit_code == 0
    assert (tmp_path / "out" / "rules" / "pairs.jsonl").read_bytes() == answers
