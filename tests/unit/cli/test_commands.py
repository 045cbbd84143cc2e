"""The command line: what it accepts, what it prints, and its exit codes."""

import errno
import os
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli import errors
from cli.__main__ import as_cli_error, bypass_proxies
from cli.client import CoordinatorClient, error_from_response, find_connection, open_client
from cli.commands import judge
from cli.console import print_table
from cli.errors import CliError
from cli.judging.progress import JudgingProgress
from cli.run_arguments import parse_fields
from cli.stack.layout import Connection, StackLayout
from services.judge.config import rules_only
from services.judge.offline.rejudge import RejudgeCounts
from services.judge.settings import JudgeSettings
from shared.config.settings import StoreSettings
from shared.contracts.ids import EpisodeId, RunId, SegmentId
from shared.store import keys

ROOT = Path(__file__).parents[3]


def zelda(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in its own process, where no system runs."""
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    command = [sys.executable, "-m", "cli", *words]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**inherited, "PYTHONPATH": str(ROOT), **environment},
    )


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["run", "list"], errors.UNREACHABLE, "No system runs here: start one with `zelda up`"),
        (["run", "list", "--url", "http://127.0.0.1:9"], errors.DENIED, "http://127.0.0.1:9 needs a token"),
        (["run", "start", "-s", "epochs"], errors.USAGE, "--set epochs: write FIELD=VALUE, e.g. --set epochs=5."),
        (["run", "start", "--config", "no.json"], errors.USAGE, "--config no.json: No such file or directory: name a"),
        (["run", "start", "--config", "list.json"], errors.USAGE, "--config list.json: it must contain a JSON object."),
        (["run", "start", "--config", "rom.gbc"], errors.USAGE, "--config rom.gbc is not JSON: 'utf-8' codec"),
        (["run", "start", "epochs=5"], errors.USAGE, "inner hyphens; a field of the run needs -s: -s epochs=5."),
        (["run", "start", "--config", "nan.json"], errors.USAGE, "--config nan.json is not JSON: Out of range"),
        (
            ["run", "show", "", "--url", "http://x", "--token-file", "token"],
            errors.USAGE,
            "'' is not the name of a run: use 1-40",
        ),
        (
            ["run", "stop", ".", "--url", "http://x", "--token-file", "token"],
            errors.USAGE,
            "'.' is not the name of a run",
        ),
        (
            ["run", "watch", "a\nb", "--url", "http://x", "--token-file", "token"],
            errors.USAGE,
            "'a\\nb' is not the name of a run",
        ),
        (["run", "logs", "foo"], errors.USAGE, "foo.log does not exist: choose from coordinator, trainer, judge, "),
        (["epoch", "-s", "epoch_steps=2048"], errors.USAGE, "zelda: batch_size 4096 is larger than epoch_steps 2048:"),
        (["run", "logs", "judge"], errors.USAGE, "The log file runs/.local/logs/judge.log does not exist: start"),
        (
            ["run", "logs", "../../../etc/passwd"],
            errors.USAGE,
            "The log file runs/.local/logs/passwd.log does not exist",
        ),
        (["up", "--without", "unknown"], errors.USAGE, "--without unknown: choose from coordinator, trainer"),
        (["epoch", "-s", "epoch_step=1"], errors.USAGE, "--set epoch_step: "),
        (
            ["epoch", "--run", "No Name"],
            errors.USAGE,
            "--run 'No Name' is not the name of a run: use 1-40",
        ),
        (["dlq", "list"], errors.UNREACHABLE, "No system runs here"),
        (
            ["run", "list", "--url", "http://[::1", "--token-file", "token"],
            errors.USAGE,
            "http://[::1 is not a valid URL",
        ),
        (
            ["run", "list", "--url", "127.0.0.1:9", "--token-file", "token"],
            errors.USAGE,
            "127.0.0.1:9 is not a valid URL",
        ),
        (["run", "list", "--url", "http://x", "--token-file", "rom.gbc"], errors.USAGE, "rom.gbc is not a text file"),
        (["run", "list", "--url", "http://x", "--token-file", "accents"], errors.USAGE, "accents contains no token"),
        (["run", "list", "--url", "http://x", "--token-file", "nothing"], errors.USAGE, "nothing contains no token"),
        (["run", "list", "--url", "http://x", "--token-file", "no-one"], errors.USAGE, "no-one contains no token"),
        (
            ["run", "start", "-s", "epochs=1", "-s", "epochs.x=1"],
            errors.USAGE,
            "--set epochs.x=1: epochs is 1 and has no",
        ),
        (["demo", "-s", "world=x", "-s", "world.y=1"], errors.USAGE, '--set world.y=1: world is "x" and has no fields'),
        (["study", "--jobs", "-1"], errors.USAGE, "greater than or equal to 0"),
        (["study", "--mode", "none"], errors.USAGE, "--mode none disables shaping in every arm"),
        (["study", "--segments", "0"], errors.USAGE, "Invalid value for '--segments'"),
        (["study", "--epoch-steps", "1000"], errors.USAGE, "Invalid value for '--epoch-steps'"),
        (
            ["judge", "compare", "m1", "a", "b", "--plot", "no/x.png"],
            errors.USAGE,
            "for x.png does not exist: create it first.",
        ),
        (["export", "segments", "m1", "--to", "list.json"], errors.USAGE, "list.json is not a directory: name"),
        (["export", "dataset", "m1", "--to", "."], errors.USAGE, ". is a directory: name a file."),
        (["judge", "compare", "m1", "a", "b", "--plot", "."], errors.USAGE, ". is a directory: name a file."),
        (["export", "segments", "No Name"], errors.USAGE, "'No Name' is not the name of a run"),
        (["up", "--rom", "no.gbc"], errors.USAGE, "--rom no.gbc: No such file or directory: name the .gbc file"),
        (["up", "--rom", "rom.gbc"], errors.USAGE, "--rom rom.gbc: unknown ROM with MD5 "),
        (["up", "--judges", "no.yaml"], errors.USAGE, "--judges no.yaml: not readable"),
        (
            ["up", "--judges", "list.json"],
            errors.USAGE,
            "--judges list.json: not a mapping; give a mapping with rubric",
        ),
        (["up", "--judges", "v2.yaml"], errors.USAGE, "--judges v2.yaml: rubric 'v2': the other services read"),
        (["demo", "-s", "epochs=0"], errors.USAGE, "--set epochs: Input should be greater than or equal to 1."),
        (["demo", "-s", "name=x"], errors.USAGE, "--set name: no such field; choose from actions, batch_size, "),
        (
            ["epoch", "-s", "sampling.bugdet=9"],
            errors.USAGE,
            "--set sampling.bugdet: no such field; did you mean budget?\n",
        ),
        (["demo", "-s", "world=vall"], errors.USAGE, "or wild:NUMBER, e.g. wild:7; did you mean vale?\n"),
        (["demo", "-s", "shaping=none"], errors.USAGE, "--set shaping: has fields of its own: shaping.mode, "),
        (["demo", "-s", "difficulty=hard"], errors.USAGE, "'normal' or 'harsh'; did you mean harsh?\n"),
        (
            ["up", "--judges", "typo.yaml"],
            errors.USAGE,
            "--judges typo.yaml: judges.0.frame: no such field; did you mean frames?\n",
        ),
        (["demo", "--judges", "rom.gbc"], errors.USAGE, "--judges rom.gbc: not readable"),
        (["demo", "-s", "game=oracle-of-seasons"], errors.USAGE, "oracle-of-seasons needs your own ROM image: name"),
        (["epoch", "-s", "game=oracle-of-seasons"], errors.USAGE, "oracle-of-seasons needs your own ROM image: name"),
        (["epoch", "--rom", "rom.gbc"], errors.USAGE, "--rom rom.gbc: unknown ROM with MD5 "),
        (
            ["up", "--store", "list.json"],
            errors.USAGE,
            "list.json cannot be used (File exists): fix it, or choose another",
        ),
        (
            ["up", "--root", "list.json/x"],
            errors.USAGE,
            "list.json/x cannot be used (Not a directory): fix it, or choose another",
        ),
        (
            ["run", "start", "-s", "world=\udcff", "--url", "http://x", "--token-file", "token"],
            errors.USAGE,
            "An argument is not UTF-8 text",
        ),
        (["fly"], errors.USAGE, "No such command 'fly'"),
    ],
)
def test_an_error_is_one_sentence_and_an_exit_code(tmp_path: Path, words: list[str], code: int, sentence: str) -> None:
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "nan.json").write_text('{"run_hours": NaN}')
    (tmp_path / "v2.yaml").write_text("{rubric: v2, judges: [{name: r, kind: rules, dimensions: [progress]}]}")
    (tmp_path / "typo.yaml").write_text("{judges: [{name: r, kind: rules, dimensions: [progress], frame: 3}]}")
    (tmp_path / "rom.gbc").write_bytes(b"\xce\xed\x66\x66")
    (tmp_path / "token").write_text("operator:abc\n")
    (tmp_path / "accents").write_text("sésame")
    (tmp_path / "nothing").write_text("\n")
    (tmp_path / "no-one").write_text("operator:\n")
    store = {"ZELDA_STORE__URL": f"file://{tmp_path}"} if words[0] in ("judge", "export") else {}
    done = zelda(*words, cwd=tmp_path, **store)
    assert done.returncode == code, done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_log_name_lists_the_existing_logs(tmp_path: Path) -> None:
    logs = StackLayout(tmp_path / "runs/.local").logs
    logs.mkdir(parents=True)
    for name in ("trainer", "rules-judge"):
        (logs / f"{name}.log").touch()
    done = zelda("run", "logs", "demo-1", cwd=tmp_path)
    assert (done.returncode, "choose from rules-judge, trainer." in done.stderr) == (errors.USAGE, True)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_reported_without_a_file_name(code: int) -> None:
    end = as_cli_error(OSError(code, "[Errno 28] Error writing bytes to file. Detail: ..."))
    assert end is not None
    assert end.code == errors.USAGE
    assert str(end) == f"A file could not be written ({os.strerror(code)}): free some space, or choose another disk."


def test_a_missing_package_is_named_with_the_command_that_installs_it() -> None:
    end = as_cli_error(ModuleNotFoundError("No module named 'yaml'", name="yaml"))
    assert end is not None
    assert end.code == errors.USAGE
    assert str(end).startswith("This command needs the package yaml, which is not installed")
    assert str(end).endswith("or pip install -c .ci/constraints.txt -e '.[judge]'.")


def test_a_missing_module_of_this_product_shows_its_traceback() -> None:
    assert as_cli_error(ModuleNotFoundError("No module named 'services.judge.x'", name="services.judge.x")) is None


def test_a_stopped_system_is_reported(tmp_path: Path) -> None:
    layout = StackLayout(tmp_path / "runs" / ".local")
    Connection("http://127.0.0.1:9", layout.secret("operator"), 1, {}).save(layout.connection)
    done = zelda("run", "stop", "garden", cwd=tmp_path)
    assert done.returncode == errors.UNREACHABLE
    assert "no longer runs at http://127.0.0.1:9: start it with `zelda up`" in done.stderr


@pytest.mark.parametrize(
    "command", [("export", "segments", "x"), ("judge", "segments", "x", "--rules"), ("judge", "compare", "x", "a", "b")]
)
def test_an_unreachable_store_is_reported(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "key").write_text("unused")
    store = {"URL": "s3://zelda", "ENDPOINT": "http://127.0.0.1:9", "ACCESS_KEY_FILE": "key", "SECRET_KEY_FILE": "key"}
    done = zelda(*command, cwd=tmp_path, **{f"ZELDA_STORE__{name}": value for name, value in store.items()})
    assert done.returncode == errors.UNREACHABLE, done.stderr
    assert "check the ZELDA_* addresses, and that the system runs." in done.stderr
    assert "Traceback" not in done.stderr


def test_a_pass_without_a_readable_segment_fails(tmp_path: Path) -> None:
    archive = tmp_path / keys.segment(RunId("m1"), 0, EpisodeId("e1"), SegmentId("s1"))
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"PK damaged")
    done = zelda("judge", "segments", "m1", "--rules", cwd=tmp_path, ZELDA_STORE__URL=f"file://{tmp_path}")
    assert done.stdout == "judged 0, abstained 0, dead 1, already scored 0\n"
    assert (done.returncode, "No segment could be read" in done.stderr) == (errors.FAILED, True), done.stderr


def test_a_reward_model_needs_a_run(tmp_path: Path) -> None:
    done = zelda("rewardmodel", "train", "m1", "--epoch", "0", cwd=tmp_path, ZELDA_STORE__URL=f"file://{tmp_path}")
    assert done.returncode == errors.NOT_FOUND, done.stderr
    assert done.stderr == "zelda: There is no run m1: list the runs with `zelda run list`.\n"


async def test_the_progress_line_is_cleared_before_the_result(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    own = JudgeSettings(store=StoreSettings(url="memory://"))
    JudgingProgress()(RejudgeCounts(judged=3), "")
    await judge._pass(own, rules_only(), RunId("m1"), None, 1)
    assert capsys.readouterr().err.endswith("\r\x1b[2K3 judged, 0 abstained, 0 dead\r\x1b[2K")


@pytest.mark.parametrize("text", ["", '{"url": 1', "[1]", '{"url": "x", "token_file": "t", "pid": 1, "settings": 3}'])
def test_a_damaged_connection_file_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "connection.json"
    path.write_text(text)
    with pytest.raises(CliError, match=f"{path} is damaged: delete it") as problem:
        Connection.load(path)
    assert problem.value.code == errors.UNREACHABLE


def test_only_the_owner_can_read_secrets(tmp_path: Path) -> None:
    layout = StackLayout(tmp_path)
    for path in (layout.secret("operator"), layout.tokens()):
        assert path.stat().st_mode & 0o077 == 0
    assert layout.secret("operator").read_text() == layout.secret("operator").read_text()


def test_fields_nest_and_keep_their_types() -> None:
    made = parse_fields(["epochs=5", "world=wild:7", "shaping.mode=none", "rnd=false"], base={"seed": 1})
    assert made == {"seed": 1, "epochs": 5, "world": "wild:7", "shaping": {"mode": "none"}, "rnd": False}
    # Valid for Python but not JSON: sent as text, so that the server rejects the field by name.
    assert parse_fields(["seed=NaN", "run_hours=1e999"]) == {"seed": "NaN", "run_hours": "1e999"}


@pytest.mark.parametrize(
    ("status", "code"), [(401, errors.DENIED), (403, errors.DENIED), (404, errors.NOT_FOUND), (409, errors.CONFLICT)]
)
def test_the_message_of_the_server_is_shown(status: int, code: int) -> None:
    headers = {"content-type": "application/problem+json"}
    problem = error_from_response(httpx.Response(status, headers=headers, content=b'{"detail": "No."}'))
    assert (problem.code, str(problem)) == (code, "No.")


def test_a_starting_coordinator_counts_as_unreachable() -> None:
    answer = httpx.Response(404, content=b"no such path", request=httpx.Request("GET", "http://zelda/runs"))
    assert error_from_response(answer).code == errors.UNREACHABLE


PAGE = {"content-type": "text/html; charset=utf-8"}


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(302, headers={"location": "https://login.cluster/oauth/authorize?client_id=zelda"}),
        httpx.Response(200, headers=PAGE, text="<h1>Log in</h1>"),
        httpx.Response(403, headers=PAGE, text="<h1>Log in with OpenShift</h1>"),
    ],
)
def test_a_login_page_is_reported_with_a_way_to_bypass_it(answer: httpx.Response) -> None:
    http = httpx.Client(base_url="http://zelda", transport=httpx.MockTransport(lambda request: answer))
    client = CoordinatorClient(http, "http://zelda")
    with pytest.raises(
        CliError, match=r"A login page answered at http://zelda/runs instead of .* port-forward"
    ) as asked:
        client.get("/runs", limit=1000)
    with pytest.raises(CliError, match="A login page answered at http://zelda/runs/r/events") as watched:
        client.stream("/runs/r/events").__enter__()
    assert asked.value.code == watched.value.code == errors.DENIED


def test_a_moved_address_is_reported() -> None:
    there = {"location": "https://zelda/runs?limit=1"}
    request = httpx.Request("GET", "http://zelda/runs?limit=1")
    answer = error_from_response(httpx.Response(302, headers=there, request=request))
    assert str(answer).startswith("http://zelda/runs has moved to https://zelda/runs: pass the new address with --url")
    assert answer.code == errors.USAGE


def test_the_environment_wins_over_the_local_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ZELDACLI_URL", "http://elsewhere")
    with pytest.raises(CliError, match="needs a token"):
        find_connection()
    monkeypatch.setenv("ZELDACLI_TOKEN_FILE", "token")
    assert find_connection().url == "http://elsewhere"


class NoRuns(BaseHTTPRequestHandler):
    """A coordinator without runs."""

    def do_GET(self) -> None:
        body = b'{"items": [], "next": null}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Suppress the access log."""


def test_a_proxy_is_bypassed_for_this_machine(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc")
    with HTTPServer(("127.0.0.1", 0), NoRuns) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        away = {"http_proxy": "http://127.0.0.1:9", "NO_PROXY": "example.com"}
        done = zelda("run", "list", "--json", "--url", url, "--token-file", "token", cwd=tmp_path, **away)
        server.shutdown()
    assert (done.returncode, done.stdout) == (errors.OK, "[]\n"), done.stderr


@pytest.mark.parametrize(
    ("given", "after"),
    [({}, "127.0.0.1,localhost"), ({"NO_PROXY": "a,b"}, "a,b,127.0.0.1,localhost"), ({"no_proxy": "*"}, "*")],
)
def test_existing_proxy_exceptions_are_kept(given: dict[str, str], after: str) -> None:
    bypass_proxies(given)
    assert given["no_proxy"] == after


def test_an_explicit_token_file_is_used_for_the_local_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = StackLayout(tmp_path / "runs" / ".local")
    with socket.create_server(("127.0.0.1", 0)) as system:
        url = f"http://127.0.0.1:{system.getsockname()[1]}"
        Connection(url, layout.secret("operator"), os.getpid(), {}).save(layout.connection)
        monkeypatch.chdir(tmp_path)
        assert find_connection(token_file=layout.secret("viewer")).token_file == layout.secret("viewer")
        monkeypatch.setenv("ZELDACLI_TOKEN_FILE", "of another system")
        assert find_connection().token_file == layout.secret("operator")


@pytest.mark.parametrize("text", ["{}\n", "operator:{}\n", "viewer: {}\n"])
@pytest.mark.parametrize("token", ["0123456789abcdef", "01234567:89:abcdef"])
def test_a_token_is_sent_whole_with_or_without_its_role(tmp_path: Path, text: str, token: str) -> None:
    file = tmp_path / "token"
    file.write_text(text.format(token))
    with open_client(Connection("http://zelda", file, 0, {})) as client:
        assert client._http.headers["authorization"] == f"Bearer {token}"


def test_brackets_are_not_parsed_as_markup(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    print_table("dead letters", ("number", "reason"), [("1", "steps: [type=missing]"), ("2", "no end [/x]")])
    shown = capsys.readouterr().out
    assert "steps: [type=missing]" in shown
    assert "no end [/x]" in shown
