"""A damaged document of a run is named by its key, in whichever command reads it."""

import asyncio
import shutil
from pathlib import Path

import pytest

from cli.__main__ import exit_code_of
from cli.errors import FAILED
from shared.config.settings import StoreSettings
from shared.contracts.ids import RunId, SegmentId
from shared.store import keys
from shared.store.open import open_store
from shared.store.port import Store
from tests.unit.cli.test_ended_system import ARCHIVE, RUN

SEGMENT = SegmentId("e0000-r00-v01-0000-s001")
ORDER, FINISHED = keys.epoch_start(RunId(RUN), 0), keys.epoch_finished(RunId(RUN), 0)
CARD, SUMMARY = keys.reward_model_card(RunId(RUN), 0), keys.run_summary(RunId(RUN))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The store of a finished run, which `zelda` is configured to use."""
    shutil.unpack_archive(ARCHIVE, tmp_path / "store")
    monkeypatch.setenv("ZELDA_STORE__URL", f"file://{tmp_path}/store")
    monkeypatch.chdir(tmp_path)
    return open_store(StoreSettings(url=f"file://{tmp_path}/store"))


def said_about(store: Store, key: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command says that fails because this document is damaged."""
    asyncio.run(store.put(key, b"{"))
    assert exit_code_of(words) == FAILED
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (FINISHED, ["policy", "export", RUN]),
        (ORDER, ["policy", "export", RUN]),
        (FINISHED, ["trace", RUN, "--epoch", "0"]),
        (ORDER, ["trace", RUN, "--epoch", "0"]),
        (CARD, ["trace", RUN, SEGMENT]),
        (keys.score(RunId(RUN), 0, SEGMENT), ["trace", RUN, SEGMENT]),
        (FINISHED, ["run", "diff", RUN, RUN]),
        (ORDER, ["run", "diff", RUN, RUN]),
        (CARD, ["run", "diff", RUN, RUN]),
        (CARD, ["rewardmodel", "train", RUN, "--epoch", "0"]),
        (SUMMARY, ["export", "tensorboard", RUN]),
    ],
)
def test_a_damaged_document_is_named_by_its_key(
    key: str, words: list[str], store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    said = said_about(store, key, words, capsys)
    assert said.startswith(f"zelda: {key} is not a valid ")
    assert said.endswith("; it is damaged, or a newer version wrote it.")


@pytest.mark.parametrize("key", [FINISHED, ORDER])
def test_a_training_names_the_damaged_document_of_its_epoch(
    key: str, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(store.delete(CARD))
    said = said_about(store, key, ["rewardmodel", "train", RUN, "--epoch", "0"], capsys)
    assert said.startswith(f"zelda: {key} is not a valid ")
