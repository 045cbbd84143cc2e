"""One vocabulary: class names are unique, refused words stay out, folders and test names stay readable."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PRODUCT = ("services", "shared", "cli", "studies", "bramble", "bench", "deploy")
ROLES = {"Handlers", "Settings"}  # every service has one
MAX_MODULES, MAX_ROOT_ENTRIES, MAX_TEST_NAME = 15, 15, 70

# Metaphors that once named classes and functions, each with the word to use in its place.
REFUSED_IN_NAMES = {
    "album": "rebuilder",
    "clerk": "writer",
    "conductor": "state machine",
    "court": "runtime",
    "deed": "plan step",
    "desk": "service",
    "dice": "rng",
    "epilogue": "finished-run updater",
    "juror": "judge",
    "newsroom": "event source",
    "outbox": "queue",
    "parcel": "job",
    "patrol": "reconciler",
    "prover": "solver",
    "pulse": "heartbeat",
    "shelf": "store",
    "tray": "shared memory",
    "unheeded": "noop",
    "vigil": "timer",
}
# Turns of phrase that have to be read twice, each with a plain one.
REFUSED_IN_PROSE = {
    "anew": "again",
    "at once": "immediately",
    "dice": "random number generator",
    "for ever": "without end",
    "is none": "does not exist",
    "are none": "do not exist",
    "nobody": "no client, no process, no one",
    "tell": "report, log, say",
    "tells": "reports, logs, says",
    "told": "reported, logged, said",
    "whatever": "any",
    "whoever": "the process that",
}
PROSE = re.compile(rf"(?<!\.)\b({'|'.join(REFUSED_IN_PROSE)})\b(?!\()")  # `stream.tell()` and `is None` are code
PROMPTS = ROOT / "services/judge/domain/prompts.py"  # its bytes are behaviour: every score holds a digest of them
PROSE_SUFFIXES = {".py", ".md", ".js", ".html", ".css", ".tpl"}


def product_files(*suffixes: str) -> Iterator[Path]:
    for package in PRODUCT:
        yield from sorted(path for path in (ROOT / package).rglob("*") if path.suffix in suffixes)


def definitions(path: Path) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def words(name: str) -> set[str]:
    """`SegmentWriter` and `segment_writer` are both {segment, writer}."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def test_a_public_class_name_is_defined_once() -> None:
    places = defaultdict(list)
    for path in product_files(".py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in ROLES:
                places[node.name].append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_refused_words_name_no_module_class_or_function() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}: say {REFUSED_IN_NAMES[word]}"
        for path in product_files(".py")
        for name in (path.stem, *(node.name for node in definitions(path)))
        for word in sorted(words(name) & REFUSED_IN_NAMES.keys())
    ]
    assert found == []


def test_constants_that_bound_a_value_are_called_max_or_min() -> None:
    bound = re.compile(r"^ *((?:MOST|LEAST|LONGEST|SHORTEST|LARGEST|SMALLEST)(?:_[A-Z_]+)?)\b[^=\n]*= ", re.MULTILINE)
    found = [
        f"{path.relative_to(ROOT)}: {name}: say MAX or MIN"
        for path in product_files(".py")
        for name in bound.findall(path.read_text())
    ]
    assert found == []


def test_refused_words_are_in_no_comment_message_or_page() -> None:
    pages = [*product_files(*PROSE_SUFFIXES), *sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]}: say {REFUSED_IN_PROSE[match[0]]}"
        for path in pages
        if path != PROMPTS
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for match in PROSE.finditer(line)
    ]
    assert found == []


def test_a_folder_holds_few_enough_modules_to_read_its_listing() -> None:
    modules: dict[str, int] = defaultdict(int)
    for path in product_files(".py"):
        modules[str(path.parent.relative_to(ROOT))] += path.name not in {"__init__.py", "__main__.py"}
    assert {folder: number for folder, number in modules.items() if number > MAX_MODULES} == {}


def test_the_root_folder_fits_one_glance() -> None:
    ignored = {line.strip("/") for line in (ROOT / ".gitignore").read_text().split()}
    entries = {path.name for path in ROOT.iterdir()} - ignored
    assert (
        len([name for name in entries if not name.startswith(".") and not name.endswith(".egg-info")])
        <= MAX_ROOT_ENTRIES
    )


def test_test_names_fit_one_line_of_a_report() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in definitions(path)
        if node.name.startswith("test_") and len(node.name) > MAX_TEST_NAME
    ]
    assert long == []


@pytest.mark.parametrize(
    ("name", "parts"), [("RunSVGWriter", {"run", "svg", "writer"}), ("_read_one", {"read", "one"})]
)
def test_names_are_split_into_words(name: str, parts: set[str]) -> None:
    assert words(name) == parts


def test_the_glossary_gives_each_term_one_meaning() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    terms = [term for term in rows if term not in ("word", "---")]
    assert len(terms) > 60
    assert {term for term in terms if terms.count(term) > 1} == set()
