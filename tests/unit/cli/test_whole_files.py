"""Nothing is half written: not on a full disk, not by two commands together, not after the end of the terminal."""

import asyncio
import os
import resource
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.errors import CONFLICT, CliError
from cli.llm.assemble import assemble
from cli.output_paths import require_writable_file
from cli.stack.certificates import ensure_certificate
from cli.stack.layout import StackLayout
from cli.stack.lock import locked_directory
from cli.stack.signals import run_cancellable
from shared.process.whole_file import write_whole_file
from tests.unit.cli.test_assemble import BYTES, MODEL


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can grow during the body."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_a_full_disk_leaves_the_former_file(tmp_path: Path) -> None:
    file = tmp_path / "policy.npz"
    write_whole_file(file, b"former")
    with pytest.raises(OSError, match="File too large"), full_disk():
        write_whole_file(file, b"new")
    assert file.read_bytes() == b"former"
    assert list(tmp_path.iterdir()) == [file]


def test_a_written_file_keeps_its_link_and_its_mode(tmp_path: Path) -> None:
    file, link = tmp_path / "policy-7.npz", tmp_path / "newest.npz"
    file.touch(mode=0o640)
    link.symlink_to(file.name)
    write_whole_file(link, b"new")
    assert link.is_symlink()
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new", 0o640)


def test_a_file_in_a_read_only_folder_is_refused_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.json"
    file.touch()
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)  # the superuser may write everywhere
    with pytest.raises(CliError, match=r"x\.json cannot be written: choose a file or a directory that"):
        require_writable_file(file)


def test_a_full_disk_leaves_no_empty_secret(tmp_path: Path) -> None:
    layout = StackLayout(tmp_path)
    with pytest.raises(OSError, match="File too large"), full_disk():
        layout.secret("operator")
    assert not (tmp_path / "secrets" / "operator").exists()
    assert layout.secret("operator").stat().st_mode & 0o777 == 0o600


def test_an_empty_secret_and_certificate_are_made_again(tmp_path: Path) -> None:
    layout = StackLayout(tmp_path)
    certificate, key = ensure_certificate(tmp_path / "secrets")
    for file in (certificate, key, layout.secret("operator")):
        file.write_text("")
    assert len(layout.secret("operator").read_text()) == 48
    assert ensure_certificate(tmp_path / "secrets") == (certificate, key)
    assert certificate.read_text().startswith("-----BEGIN CERTIFICATE")


def test_two_commands_assemble_a_model_once(tmp_path: Path) -> None:
    asked: list[int] = []

    def fetch(number: int) -> bytes:
        asked.append(number)
        time.sleep(0.05)
        return BYTES[100 * (number - 1) : 100 * number]

    with ThreadPoolExecutor(2) as shells:
        found = list(shells.map(lambda _: assemble(MODEL, tmp_path, fetch, lambda text: None), range(2)))
    assert [file.read_bytes() for file in found] == [BYTES, BYTES]
    assert asked == [1, 2, 3]


def test_a_command_that_reads_the_store_is_not_called_a_system(tmp_path: Path) -> None:
    said = rf"A command that reads the store already runs in {tmp_path} \(process {os.getpid()}\): wait for it,"
    reading = locked_directory(tmp_path, "command that reads the store", "wait for it")
    with reading, pytest.raises(CliError, match=said) as refused, locked_directory(tmp_path):
        raise AssertionError("two hold it")
    assert refused.value.code == CONFLICT


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_work_is_cleaned_up_after_the_end_of_the_terminal(number: signal.Signals) -> None:
    cleaned: list[signal.Signals | None] = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), number)
            await asyncio.sleep(10)
        finally:
            cleaned.append(number)

    before = signal.signal(signal.SIGHUP, lambda *_: cleaned.append(None))  # without it the test would end
    try:
        with pytest.raises(KeyboardInterrupt):
            run_cancellable(work)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert cleaned == [number]


def test_under_nohup_the_end_of_the_terminal_is_ignored() -> None:
    async def work() -> str:
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0.05)
        return "done"

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run_cancellable(work) == "done"
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
