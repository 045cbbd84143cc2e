"""Closed streams, deleted folders, odd proxies and odd paths: one sentence and an exit code, never a traceback."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cli.client import find_connection, open_client
from cli.errors import DENIED, OK, UNREACHABLE, USAGE, CliError
from cli.llm.local_judge import LocalModel
from cli.llm.model_file import find_model
from cli.run_arguments import load_config_file, parse_fields
from cli.stack.layout import Connection, StackLayout
from cli.stack.servers import find_program, nats_spec
from cli.stack.user_settings import find_judges_file, find_planner_file, find_rom
from cli.stored_runs import no_system_answers
from services.judge.config import load_service_judges

ROOT = Path(__file__).parents[3]
LIST = ["run", "list"]
NO_SYSTEM = "zelda: No system runs here: start one with `zelda up`"


def shell(command: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which $ZELDA is the command line."""
    zelda = f"{shlex.quote(sys.executable)} -m cli"
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**inherited, "PYTHONPATH": str(ROOT), "ZELDA": zelda, **environment},
    )


def test_a_closed_standard_output_does_not_end_in_a_traceback(tmp_path: Path) -> None:
    done = shell("$ZELDA --help >&-", tmp_path)
    assert (done.returncode, done.stderr) == (OK, "")
    done = shell("$ZELDA run list >&-", tmp_path)
    assert done.returncode == UNREACHABLE
    assert done.stderr.startswith(NO_SYSTEM)


@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full"])
def test_the_exit_code_does_not_depend_on_who_reads_messages(redirected: str, tmp_path: Path) -> None:
    assert shell(f"$ZELDA run list {redirected}", tmp_path).returncode == UNREACHABLE


def test_a_deleted_folder_is_named(tmp_path: Path) -> None:
    done = shell(f"mkdir gone; cd gone; rmdir ../gone; {shlex.quote(sys.executable)} -P -m cli run list", tmp_path)
    assert done.returncode == USAGE
    assert done.stderr == "zelda: The current directory was deleted: change to another one, and try again.\n"


def test_a_name_that_the_terminal_cannot_encode_is_escaped(tmp_path: Path) -> None:
    program = "from cli.__main__ import prepare_streams; prepare_streams(); print('Müller …')"
    done = shell(f"{shlex.quote(sys.executable)} -c {shlex.quote(program)}", tmp_path, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout) == (OK, "M\\xfcller \\u2026\n")


@pytest.fixture
def token(tmp_path: Path) -> Path:
    """A token file."""
    file = tmp_path / "token"
    file.write_text("secret\n")
    return file


ODD_SETTINGS = [
    {"ALL_PROXY": "socks://127.0.0.1:1080"},
    {"HTTP_PROXY": "http://proxy:3128", "NO_PROXY": "[::1],10.0.0.0/8"},
    {"SSL_CERT_FILE": "/no/such/file"},
]


@pytest.mark.parametrize("settings", ODD_SETTINGS)
def test_a_system_of_this_machine_needs_neither_proxy_nor_certificate(
    settings: dict[str, str], token: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with open_client(Connection("http://127.0.0.1:9", token, 0, {})) as client:
        with pytest.raises(CliError, match=r"http://127\.0\.0\.1:9 does not answer") as refused:
            client.get("/runs")
        assert refused.value.code == UNREACHABLE


@pytest.mark.parametrize("settings", ODD_SETTINGS)
def test_a_proxy_that_cannot_be_used_is_not_called_a_wrong_url(
    settings: dict[str, str], token: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    connection = Connection("https://zelda.example", token, 0, {})
    said = r"A proxy or a certificate of the environment cannot be used"
    with pytest.raises(CliError, match=said) as refused, open_client(connection):
        raise AssertionError("it was used")
    assert refused.value.code == USAGE


def test_empty_variables_name_no_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ZELDACLI_URL", "")
    monkeypatch.setenv("ZELDACLI_TOKEN_FILE", "")
    assert no_system_answers(None)
    with pytest.raises(CliError, match="No system runs here"):
        find_connection()
    monkeypatch.setenv("ZELDACLI_URL", " http://127.0.0.1:9 ")
    with pytest.raises(CliError, match=r"^http://127\.0\.0\.1:9 needs a token") as refused:
        find_connection()
    assert refused.value.code == DENIED


ODD_FOLDERS = ['a "b"', "it's ü", "a #b", "a: b", "back\\slash"]


@pytest.mark.parametrize("name", ODD_FOLDERS)
def test_the_bus_accepts_any_folder(name: str, tmp_path: Path) -> None:
    layout = StackLayout(tmp_path / name)
    command = [find_program("nats-server"), "-t", *nats_spec(layout, 4222).command[1:]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == OK, done.stderr


@pytest.mark.parametrize("name", ODD_FOLDERS)
def test_the_judges_file_of_a_model_accepts_any_folder(name: str, tmp_path: Path) -> None:
    layout = StackLayout(tmp_path / name)
    (file,) = LocalModel(tmp_path / "123.gguf").judge_settings(layout, 8_000, {}).values()
    judges = load_service_judges(Path(file), "")
    assert judges.routes["llm"].token_file == layout.secret("llm-key")
    assert [judge.model for judge in judges.judges] == ["123"]


def test_a_pipe_in_the_place_of_a_file_is_refused_not_awaited(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for find in (find_judges_file, find_planner_file, find_rom):
        with pytest.raises(CliError, match="pipe") as refused:
            find({}, pipe)
        assert refused.value.code == USAGE
    with pytest.raises(CliError, match=r"it is a pipe: name the \.gguf file of an instruct model\."):
        find_model(pipe)


def test_a_configuration_of_a_windows_editor_is_read(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(b'\xef\xbb\xbf{"world":\r\n"vale"}\r\n')
    assert load_config_file(file) == {"world": "vale"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"world": "vale", "world": "garden"}', "the key 'world' occurs twice in an object"),
        ('{"a":' * 5_000 + "1" + "}" * 5_000, "it is nested too deeply"),
    ],
)
def test_a_configuration_with_two_meanings_or_without_end_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text(text)
    with pytest.raises(CliError, match=f"is not JSON: {reason}") as refused:
        load_config_file(file)
    assert refused.value.code == USAGE


def test_a_deeply_nested_value_stays_text() -> None:
    assert parse_fields([f"a={'[' * 5_000}"]) == {"a": "[" * 5_000}
    assert json.dumps(parse_fields(["a=[1]"])) == '{"a": [1]}'
