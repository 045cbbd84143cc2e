"""Help pages, usage lines, completion, and an early ctrl-C."""

import asyncio
import os
import re
import resource
import signal
from pathlib import Path

import pytest

from cli import errors
from cli.app import COMMANDS, build_command
from cli.errors import MEANINGS
from tests.unit.cli.served_runs import served
from tests.unit.cli.test_commands import zelda
from tests.unit.coordinator.harness import RUN, Harness


def test_help_lists_commands_and_exit_codes_within_half_a_second(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = zelda("--help", cwd=tmp_path, COLUMNS="200")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == errors.OK
    for name in COMMANDS:
        assert f"│ {name} " in done.stdout
    text = " ".join(done.stdout.split())  # without line breaks
    for code, meaning in MEANINGS.items():
        assert f"{code} {meaning}" in text
    # Processor time: wall-clock time depends on the load of the machine.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        build_command([name])([name, "--help"], prog_name="zelda")
    assert left.value.code == errors.OK
    assert "Usage: zelda" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["judge", "compare"], "Usage: zelda judge compare [OPTIONS] RUN FIRST SECOND"),
        (["dlq", "replay"], "Usage: zelda dlq replay [OPTIONS] [NUMBER]..."),
        (["run", "start"], "Usage: zelda run start [OPTIONS] [RUN]"),
        (["up"], "Usage: zelda up [OPTIONS]"),
    ],
)
def test_usage_lines_and_values_are_plain(words: list[str], usage: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build_command(words)([*words, "--help"], prog_name="zelda")
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert usage in lines
    assert not any("<" in line and ">" in line and "<=" not in line for line in lines)


@pytest.mark.parametrize(
    ("line", "offered"),
    [("zelda ex", {"explore", "export"}), ("zelda dlq re", {"replay"}), ("zelda run st", {"start", "stop"})],
)
def test_the_shell_completes_commands(tmp_path: Path, line: str, offered: set[str]) -> None:
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1), "_ZELDA_COMPLETE": "complete_bash"}
    assert set(zelda(cwd=tmp_path, **words).stdout.split()) == offered
    zsh = zelda(cwd=tmp_path, _TYPER_COMPLETE_ARGS=line, _ZELDA_COMPLETE="complete_zsh")
    assert set(re.findall(r'"(\w+)":', zsh.stdout)) == offered


async def test_the_shell_completes_the_names_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(Harness(), tmp_path, monkeypatch) as harness:
        await harness.create_run()
        found = {name: os.environ[name] for name in ("ZELDACLI_URL", "ZELDACLI_TOKEN_FILE")}
        words = {"COMP_WORDS": "zelda run show d", "COMP_CWORD": "3", "_ZELDA_COMPLETE": "complete_bash"}
        done = await asyncio.to_thread(zelda, cwd=tmp_path, **found, **words)
        zsh = {"_TYPER_COMPLETE_ARGS": "zelda run show d", "_ZELDA_COMPLETE": "complete_zsh"}
        also = await asyncio.to_thread(zelda, cwd=tmp_path, **found, **zsh)
    assert done.stdout.split() == [RUN], done.stderr
    assert f'"{RUN}"' in also.stdout, also.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_that_calls_zelda(tmp_path: Path, shell: str) -> None:
    done = zelda(cwd=tmp_path, _ZELDA_COMPLETE=f"source_{shell}")
    assert done.returncode == errors.OK, done.stderr
    assert f"_ZELDA_COMPLETE=complete_{shell}" in done.stdout


def test_the_shell_completes_no_run_without_a_system(tmp_path: Path) -> None:
    words = {"COMP_WORDS": "zelda run show d", "COMP_CWORD": "3", "_ZELDA_COMPLETE": "complete_bash"}
    done = zelda(cwd=tmp_path, **words)
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_an_early_interrupt_shows_no_traceback(tmp_path: Path) -> None:
    # typer is the slowest import of `zelda`: this one is interrupted.
    (tmp_path / "typer.py").write_text(f"import os; os.kill(os.getpid(), {int(signal.SIGINT)})")
    path = os.pathsep.join((str(tmp_path), str(Path(__file__).parents[3])))
    done = zelda("--help", cwd=tmp_path, PYTHONPATH=path)
    assert (done.returncode, done.stderr) == (errors.INTERRUPTED, "")
