"""Every benchmark starts as a script and as a module, and answers `--help` before it measures, which takes minutes."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BENCHMARKS = sorted(path.stem for path in (ROOT / "bench").glob("*.py") if path.stem != "__init__")
SLOW_IMPORTS = ("torch", "ray")


@pytest.mark.parametrize("name", BENCHMARKS)
@pytest.mark.parametrize(("word", "code"), [("--help", 0), ("--jsn", 2)])
def test_help_and_a_misspelt_option_end_a_script_before_it_measures(
    name: str, word: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [name, word])
    with pytest.raises(SystemExit) as left:
        import_module(f"bench.{name}").main()
    assert left.value.code == code
    assert "--json" in "".join(capsys.readouterr())


@pytest.mark.parametrize("name", BENCHMARKS)
@pytest.mark.parametrize("form", ["script", "module"])
def test_benchmark_starts_from_the_root_without_slow_imports(name: str, form: str) -> None:
    target = [f"bench/{name}.py"] if form == "script" else ["-m", f"bench.{name}"]
    command = [sys.executable, "-X", "importtime", *target, "--help"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2_000:]
    assert "--json" in ended.stdout
    imported = {line.rsplit("|", 1)[-1].strip() for line in ended.stderr.splitlines()}
    assert imported.isdisjoint(SLOW_IMPORTS)
