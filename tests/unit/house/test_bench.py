"""Every benchmark starts as a script and as a module, and answers `--help` before it measures, which takes minutes."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BENCHMARKS = sorted(path.stem for path in (ROOT / "bench").glob("*.py") if path.stem != "__init__")
SLOW_IMPORTS = ("torch", "ray")
# Starts each benchmark as `python bench/NAME.py --help` or `python -m bench.NAME --help` would, in one interpreter, and
# prints how each ended, what it said, and what is imported. `bench` alone is not installed: each must find it anew.
START_EACH = """
import contextlib, io, json, os, runpy, sys
form, *names = sys.argv[1:]
path, ended = sys.path[1:], {}
for name in names:
    for module in [one for one in sys.modules if one.partition(".")[0] == "bench"]:
        del sys.modules[module]
    sys.path[:] = [os.path.abspath("bench") if form == "script" else os.getcwd(), *path]
    sys.argv = [f"bench/{name}.py", "--help"]
    code, said = None, io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            if form == "script":
                runpy.run_path(f"bench/{name}.py", run_name="__main__")
            else:
                runpy.run_module(f"bench.{name}", run_name="__main__", alter_sys=True)
    except SystemExit as left:
        code = left.code
    ended[name] = code, said.getvalue(), [one for one in sys.modules if "." not in one]
print(json.dumps(ended))
"""


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


@pytest.mark.parametrize("form", ["script", "module"])
def test_benchmarks_start_from_the_root_without_slow_imports(form: str) -> None:
    command = [sys.executable, "-c", START_EACH, form, *BENCHMARKS]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2_000:]
    started = json.loads(ended.stdout)
    assert started.keys() == set(BENCHMARKS)
    for name, (code, said, imported) in started.items():
        assert code == 0, name
        assert "--json" in said, name
        assert set(imported).isdisjoint(SLOW_IMPORTS), name
