"""The result of a simulation: its chunks are kept and resumed, and the page states what they found."""

from pathlib import Path

from tests.faults.results_page import PAGE, generated, write_results
from tests.faults.simulation import __main__ as simulation
from tests.faults.simulation.chunks import Chunk, append_chunk, read_chunks
from tests.faults.simulation.table import NAME, NOT_MEASURED, RESULTS, block, content_of

TEXT = "before\n<!-- simulation -->\nold\n<!-- end of simulation -->\nafter\n"


def page_of(file: Path) -> str:
    """The page with the block of this results file."""
    return generated(TEXT, NAME, file, block, NOT_MEASURED)


def test_a_state_file_keeps_the_last_of_equal_chunks(tmp_path: Path) -> None:
    chunks = [Chunk(0, 500, 20.0, []), Chunk(1_000, 1_000, 50.0, [1_007]), Chunk(0, 1_000, 45.5, [])]
    for one in chunks:
        append_chunk(one, tmp_path / "state")
    assert read_chunks(tmp_path / "state") == {0: chunks[2], 1_000: chunks[1]}
    assert read_chunks(tmp_path / "absent") == {}


def test_a_finished_chunk_is_not_played_again(tmp_path: Path) -> None:
    append_chunk(Chunk(10**9, 1_000, 50.0, []), tmp_path / "state")
    assert simulation.play(10**9, 1_000, tmp_path / "state") == []
    assert len((tmp_path / "state").read_text().splitlines()) == 1


def test_the_page_states_histories_violations_and_time(tmp_path: Path) -> None:
    chunks = [Chunk(1_000, 1_000, 50.0, []), Chunk(0, 1_000, 40.0, [])]
    write_results(tmp_path / "simulation.json", content_of(chunks), "2026-11-24")
    page = page_of(tmp_path / "simulation.json")
    assert "| 2,000 | 0-1999 | 0 | 1.5 | 22 |" in page
    assert "2026-11-24, [chunks](results/faults/simulation.json)" in page
    assert "Seeds with violations" not in page
    assert NOT_MEASURED in page_of(tmp_path / "absent")


def test_the_page_names_the_seeds_of_violations(tmp_path: Path) -> None:
    chunks = [Chunk(0, 1_000, 40.0, [3, 4, 9])]
    write_results(tmp_path / "simulation.json", content_of(chunks))
    page = page_of(tmp_path / "simulation.json")
    assert "| 1,000 | 0-999 | 3 |" in page
    assert "Seeds with violations: 3-4, 9." in page


def test_the_page_shows_the_committed_simulation() -> None:
    text = PAGE.read_text("utf-8")
    assert generated(text, NAME, RESULTS, block, NOT_MEASURED) == text, "run `python -m tests.faults.simulation.table`"
