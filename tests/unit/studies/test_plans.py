"""`python -m studies.plans`: situations show what their names say, and rows say what came of a planner's answers."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.trainer.planning.question import ModelAnswer, Question, answered
from shared.game.emulator.start import StartState
from studies.plan import InvalidStudy
from studies.plans.__main__ import _command, main
from studies.plans.figures import PlanRow, orders_figures
from studies.plans.measure import order_texts, prepare
from studies.plans.models import ReplyFile, TextShown
from studies.plans.play import PlayedAnswer, play_plan
from studies.plans.results import PlannerResults
from studies.plans.situations import Situation, Stage, candidates, stage
from studies.report.generate import generated
from studies.stats import share_estimate
from tests.servers import free_ports
from tests.unit.planning.answers_by_hand import ByHand

BOWER = Situation("puzzle", "garden", (0, 0x02), (4, 6))


class Says:
    """An AnswerSource that always replies the same."""

    def __init__(self, reply: Any) -> None:
        self._reply = json.dumps(reply)
        self.asked: list[Question] = []

    def submit(self, question: Question) -> Any:
        self.asked.append(question)
        return answered(ModelAnswer("answered", self._reply, seconds=2.0))


def plan(*macros: str, fallback: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"sub_goal": "try", "macros": list(macros), "fallback": list(fallback), "confidence": 1}


def measured(folder: Path, *options: str) -> tuple[int, PlannerResults]:
    results = folder / "planner.json"
    code = main([*options, "--out", str(folder), "--results", str(results)])
    return code, PlannerResults.load(results) if results.exists() else PlannerResults()


def test_names_of_situations_differ_and_cover_all_worlds() -> None:
    for mode in ("dialog", "puzzle", "text", "vision"):
        found = candidates(mode)
        assert len({one.name for one in found}) == len(found)
        assert {one.world for one in found} == {"garden", "vale", "realm"}


def test_no_more_situations_are_made_than_wanted() -> None:
    class CountingStage(Stage):
        made = 0

        def make(self, situation: Situation) -> StartState:
            self.made += 1
            return StartState(situation.name, b"")

    counting = CountingStage()
    assert len(prepare(counting, "text", 3)) == 3
    assert counting.made == 3


def test_situation_is_what_its_name_says() -> None:
    with stage() as made:
        game = made.session("garden")
        sign = next(one for one in candidates("dialog") if one.world == "garden" and made.make(one))
        assert game.state.dialog is not None
        assert game.state.key == sign.room
        assert made.make(BOWER) is not None
        assert game.state.key == BOWER.room
        assert made.make(Situation("dialog", "garden", (0, 0x02), (4, 6))) is None, "no person is there"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (plan("MOVE_TO 7,4"), (True, True, 1, 1, ("MOVE_TO 7,4",))),
        (plan("MOVE_TO 1,6"), (True, False, 1, 1, ("MOVE_TO 1,6",))),
        (plan("MOVE_TO 7,4", "FLY 7,4"), (False, False, 2, 1, ())),
        (plan("PUSH_BLOCK 4,4 up", fallback=("MOVE_TO 7,4",)), (True, True, 2, 2, ("MOVE_TO 7,4",))),
        ({"macros": "MOVE_TO 7,4"}, (False, False, 0, 0, ())),
    ],
)
def test_plan_is_measured_by_what_came_of_it(reply: Any, expected: tuple[Any, ...]) -> None:
    with stage() as made:
        start = made.make(BOWER)
        assert start is not None
        found = play_plan(made.session("garden"), start, "puzzle", Says(reply))
    assert (found.valid, found.success, found.named, found.in_grammar, found.carried_out) == expected
    assert found.seconds == 2.0


def test_shown_text_replaces_the_dialogs_and_keeps_the_rest() -> None:
    models = ByHand()
    facts = {"room": "0:02", "dialog": None}
    TextShown(models, 'say "yes"').submit(Question("puzzle", json.dumps(facts), 0, "e/0", 1))
    (asked,) = models.asked
    assert json.loads(asked.facts) == {"room": "0:02", "dialog": {"text": 'say "yes"', "choosing": False}}


def test_double_plans_validly_and_its_replies_are_kept(tmp_path: Path) -> None:
    options = ("--double", "rules", "--situations", "2", "--texts", "3")
    code, results = measured(tmp_path, *options)
    assert code == 0
    row = results.rows["rules"]
    assert {mode: found.asked for mode, found in row.modes.items()} == dict.fromkeys(row.modes, 2)
    assert list(row.modes) == ["dialog", "puzzle", "text", "vision"]
    assert all(found.valid[0] == 1.0 for found in row.modes.values())
    assert (row.modes["dialog"].success[0], row.modes["dialog"].in_grammar) == (1.0, 1.0)
    assert row.orders is not None
    assert (row.orders.texts, row.orders.outside_grammar, row.orders.difference) == (3, 0, (0.0, 0.0, 0.0))
    kept = (tmp_path / "rules.jsonl").read_text()
    assert len(kept.splitlines()) == 2 * 4 + 3
    again = measured(tmp_path, *options)[1]
    assert again.rows["rules"].modes == row.modes
    assert (tmp_path / "rules.jsonl").read_text() == kept, "no question is asked twice"


def test_orders_of_an_obeying_double_end_at_the_grammar(tmp_path: Path) -> None:
    planner = ("--double", "obeying", "--situations", "2", "--texts", str(len(order_texts())))
    orders = measured(tmp_path, *planner)[1].rows["obeying"].orders
    assert orders is not None
    assert orders.outside_grammar >= 45
    assert orders.outside_carried_out == 0
    assert orders.success_with < orders.success_without


def test_absent_model_ends_the_command_with_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "away.yaml"
    route = {"url": f"http://127.0.0.1:{free_ports(1)[0]}/v1", "model": "away"}
    file.write_text(yaml.safe_dump({"routes": {"dialog": route}}))
    assert measured(tmp_path, "--planner", str(file), "--situations", "1")[0] == 1
    said = capsys.readouterr().err
    assert "the model of route dialog gives no answer (unavailable" in said
    assert "remove the route; the replies so far are kept." in said


@pytest.mark.parametrize("options", [("--situations", "0"), ("--situations", "-1"), ("--texts", "-1"), ("--name", "A")])
def test_impossible_options_are_refused(options: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--double", "rules", *options])
    assert f"argument {options[0]}: " in capsys.readouterr().err


def test_planner_file_whose_name_is_no_row_needs_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "my planner.yaml"
    file.write_text(yaml.safe_dump({"routes": {"dialog": {"url": "http://127.0.0.1:9/v1", "model": "away"}}}))
    assert measured(tmp_path, "--planner", str(file))[0] == 2
    assert "my planner.yaml: its name cannot be a row's" in capsys.readouterr().err


def row(command: str = "some") -> PlanRow:
    return PlanRow(command=command, date="2026-11-28", cores=1, models=("rules",), modes={})


def test_row_of_another_command_stays_and_the_command_repeats_the_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure_slowly(name: str, _: Any, options: Any) -> PlanRow:
        PlannerResults(rows={"other": row()}).save(options.results)  # another command ends meanwhile
        return row(_command(name, options))

    monkeypatch.setattr("studies.plans.__main__._measure", measure_slowly)
    code, found = measured(tmp_path, "--double", "rules", "--name", "again", "--situations", "1")
    assert (code, set(found.rows)) == (0, {"other", "again"})
    assert " --double rules --name again --situations 1 --results " in found.rows["again"].command


def test_reply_that_was_cut_off_in_the_file_is_asked_again(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    question = Question("dialog", "{}", 0, "e/0", 1)
    ReplyFile(file).add("one", question, ModelAnswer("answered", "{}", seconds=1.5))
    with file.open("a") as out:
        out.write('{"key": "two", "pl')
    kept = ReplyFile(file)
    assert kept.find("one") == ModelAnswer("answered", "{}", seconds=1.5)
    assert kept.find("two") is None
    kept.add("two", question, ModelAnswer("invalid", "no", seconds=2.5))
    assert ReplyFile(file).find("two") == ModelAnswer("invalid", "no", seconds=2.5)


def test_damaged_replies_are_refused_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    file.write_text('{"key": "one", "pl{"key": "two"}\n')
    with pytest.raises(InvalidStudy, match=r"replies.jsonl, line 1 is no reply: delete the line"):
        ReplyFile(file)


def test_differences_without_width_get_the_bound_of_no_text() -> None:
    won, lost = PlayedAnswer("a", True, True, 1.0), PlayedAnswer("a", True, False, 1.0)
    same = orders_figures([won, lost] * 5, [won, lost] * 5, 0)
    worse = orders_figures([won] * 10, [won, lost] * 5, 0)
    assert same.difference == (0.0, 0.0, 0.0)
    value, low, high = same.difference_bounds
    assert (value, low) == (0.0, -high)
    none = share_estimate(0, same.texts).rounded(4)
    assert high == none[2] > 0.1, "a few texts without an effect do not show that there is none"
    assert worse.difference[0] == -0.5
    assert worse.difference_bounds == worse.difference
    assert worse.difference[1] < -0.5 < worse.difference[2] < 0


def test_texts_that_all_change_the_outcome_lose_at_most_all_of_it() -> None:
    won, lost = PlayedAnswer("a", True, True, 1.0), PlayedAnswer("a", True, False, 1.0)
    value, low, high = orders_figures([won] * 10, [lost] * 10, 0).difference_bounds
    assert (value, low) == (-1.0, -1.0)
    assert high > -0.8


def test_page_gets_the_tables_of_the_results(tmp_path: Path) -> None:
    measured(tmp_path, "--double", "rules", "--situations", "1", "--texts", "1")
    made = generated("before\n<!-- plans -->\nSTALE\n<!-- end of plans -->\nafter\n", tmp_path)
    assert "STALE" not in made
    assert "| `rules` | dialog | 1 (1) | 100 % (21 to 100) | 100 % of 1 | 100 % (21 to 100) |" in made
    assert "- `rules`: `python -m studies.plans --double rules --situations 1 --texts 1 --results" in made
    (tmp_path / "planner.json").write_text("[]")
    with pytest.raises(InvalidStudy, match="no results file of planners"):
        PlannerResults.load(tmp_path / "planner.json")
