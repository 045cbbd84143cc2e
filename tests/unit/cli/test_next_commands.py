"""The suggested commands are accepted by the command line, and reach the system that the user named."""

import shlex
from pathlib import Path
from typing import get_args

import pytest

from cli.__main__ import exit_code_of
from cli.errors import OK
from cli.runs.next_commands import HERE, Reach, next_commands, print_next
from shared.contracts.events import RunState

ADDRESS = " --url http://x --token-file 'a token'"
AWAY = Reach(ADDRESS, local=False)


@pytest.mark.parametrize("state", get_args(RunState))
@pytest.mark.parametrize("reach", [HERE, Reach(" --token-file token"), AWAY])
def test_the_command_line_accepts_each_suggestion(state: RunState, reach: Reach) -> None:
    for command in next_commands("m1", state, reach):
        program, *words = shlex.split(command)
        # --help ends the command before it runs, but after its options are parsed.
        assert (program, exit_code_of([*words, "--help"])) == ("zelda", OK), command


def test_another_system_is_asked_for_nothing_that_only_this_machine_has() -> None:
    assert next_commands("m1", "finished", AWAY) == [f"zelda run show m1{ADDRESS}"]
    assert next_commands("m1", "failed", AWAY) == [f"zelda run resume m1{ADDRESS}"]
    assert next_commands("m1", "failed") == ["zelda run logs trainer", "zelda run resume m1"]


def test_the_called_command_is_not_suggested_again() -> None:
    assert next_commands("show", "finished", after="run show") == ["zelda report show"]
    assert next_commands("m1", "finished", AWAY, after="run show") == []


def test_options_and_environment_tell_whether_the_system_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ZELDACLI_URL", raising=False)
    assert Reach.of(None, None) == HERE
    assert Reach.of(None, Path("token")) == Reach(" --token-file token")
    assert Reach.of("http://x", Path("a token")) == AWAY
    monkeypatch.setenv("ZELDACLI_URL", "http://x")
    assert Reach.of(None, None) == Reach(local=False)


@pytest.mark.parametrize(
    ("state", "line"),
    [
        ("stopped", "Next:  zelda up, then zelda run resume m1"),
        ("running", "Next:  zelda up, then zelda run watch m1 or zelda run stop m1"),
        ("failed", "Next:  zelda run logs trainer    zelda up, then zelda run resume m1"),
        ("finished", "Next:  zelda report m1"),
    ],
)
def test_without_a_system_commands_that_need_one_come_after_up(
    state: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_next("m1", state, Reach(up=False), after="run show")
    assert capsys.readouterr().err == f"{line}\n"
