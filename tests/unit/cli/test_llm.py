"""`--llm`: an unusable model is refused before anything starts, and a usable one becomes the judge of the system."""

import struct
from collections.abc import Callable
from importlib import util
from pathlib import Path

import pytest

from cli.commands.demo import LLM_CHECKS
from cli.errors import USAGE, CliError
from cli.llm import model_file
from cli.llm.local_judge import CONTEXT, VOTES, LocalModel, model_name
from cli.llm.model_file import find_model
from cli.stack.local_stack import LocalStack, StackOptions, build_stack
from cli.stack.ports import PortAllocator
from cli.stack.services import JUDGE_URL
from cli.stack.user_settings import JUDGES_FILE, user_settings
from services.judge.config import load_service_judges
from services.judge.settings import JudgeSettings
from shared.contracts.scores import DIMENSIONS


def gguf(path: Path, version: int = 3) -> Path:
    """The beginning of a GGUF file, all that this program itself looks at."""
    path.write_bytes(struct.pack("<4sI", b"GGUF", version) + bytes(64))
    return path


def system(root: Path, llm: Path, **judge: str) -> LocalStack:
    """A system with a language model as judge, described and not started."""
    extra = {"judge": {f"ZELDA_JUDGE__{name.upper()}": value for name, value in judge.items()}}
    return build_stack(
        StackOptions(root=root, store=root / "store", extra=extra, llm=LocalModel(llm)), print, PortAllocator()
    )


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: None, "no such file or directory: name the .gguf file"),
        (lambda path: path.mkdir(), "is a directory: name the .gguf file"),
        (lambda path: path.write_bytes(b""), "it is not a GGUF file"),
        (lambda path: path.write_bytes(b"PK\x03\x04 a zip archive"), "it is not a GGUF file"),
        (lambda path: gguf(path, version=1), "it has GGUF version 1, but llama.cpp reads only 2 and 3"),
    ],
)
def test_an_unusable_model_is_named_with_its_reason(
    make: Callable[[Path], object], reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "model.gguf"
    make(path)
    with pytest.raises(CliError, match=reason) as refused:
        find_model(path)
    assert refused.value.code == USAGE
    assert str(path) in str(refused.value)


def test_a_device_is_no_model() -> None:
    with pytest.raises(CliError, match="it is not a regular file"):
        find_model(Path("/dev/null"))


def test_a_missing_server_is_refused_with_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_file, "find_spec", lambda name: None if name == "xllamacpp" else util.find_spec(name))
    with pytest.raises(CliError, match=r"run make setup, or pip install -c \S+ -e '\.\[llm\]'"):
        find_model(gguf(tmp_path / "model.gguf"))


def test_a_relative_path_is_found_from_any_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gguf(tmp_path / "model.gguf")
    monkeypatch.chdir(tmp_path)
    assert find_model(Path("model.gguf")).file == tmp_path / "model.gguf"


def test_the_file_gives_the_model_a_name_that_requests_can_carry() -> None:
    assert model_name(Path("/models/Qwen2.5 (coder) é.gguf")) == "Qwen2.5-coder"
    assert model_name(Path("...gguf")) == "model"
    assert len(model_name(Path("x" * 200))) == 120


def test_two_sources_of_judges_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="--llm and --judges both choose the judges"):
        user_settings({}, judges=tmp_path / "judges.yaml", llm=True)


def test_the_option_wins_over_a_judges_file_of_the_environment(tmp_path: Path) -> None:
    found = user_settings({JUDGES_FILE: str(tmp_path / "missing.yaml")}, llm=True)["judge"]
    assert found == {"ZELDA_JUDGE__KEEP_REPLIES": "true"}


def test_the_judge_asks_the_model_once_for_all_dimensions(tmp_path: Path) -> None:
    one = system(tmp_path, gguf(tmp_path / "my model.gguf"))
    server = one.process("llm").spec
    settings = one.process("judge").spec.environment
    file = load_service_judges(Path(settings[JUDGES_FILE]), "")
    (judge,), route = file.judges, file.routes["llm"]
    assert set(judge.dimensions) == set(DIMENSIONS)
    assert judge.model == "my-model"
    assert route.url == f"http://127.0.0.1:{server.ports[0]}/v1"
    assert route.token_file is not None
    assert route.token_file.read_text() == one.layout.secret("llm-key").read_text()
    options = dict(zip(server.command[4::2], server.command[5::2], strict=True))
    assert options["--slots"] == str(max(judge.votes)) == str(VOTES)
    assert judge.max_prompt_tokens + judge.max_output_tokens <= int(options["--context"]) == CONTEXT
    assert one.connection.settings[JUDGES_FILE] == settings[JUDGES_FILE], "`zelda judge` asks the same model"


def test_the_service_accepts_the_settings_and_the_users_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = gguf(tmp_path / "model.gguf")
    for name, value in system(tmp_path, model, slots="7").process("judge").spec.environment.items():
        monkeypatch.setenv(name, value)
    for name, value in LLM_CHECKS.items():
        monkeypatch.setenv(name, value)
    settings = JudgeSettings()
    assert settings.judge.slots == 7
    assert (settings.judge.canary_segments, settings.judge.audit_share) == (2, 0)


def test_a_system_without_the_option_starts_no_model(tmp_path: Path) -> None:
    one = build_stack(StackOptions(root=tmp_path, store=tmp_path / "store"), print, PortAllocator())
    assert "llm" not in {process.spec.name for process in one.servers}
    assert JUDGES_FILE not in one.process("judge").spec.environment
    assert JUDGE_URL in one.process("judge").spec.environment
