"""An output path is checked before the work: it must be a file that can be written, with the ending of its format."""

import os
from pathlib import Path

import numpy as np
import pytest

from cli.errors import USAGE, CliError
from cli.output_paths import PICTURE, VIDEO, require_writable_file
from services.exporter.adapters.video import VideoFile


def test_new_and_former_files_are_taken(tmp_path: Path) -> None:
    require_writable_file(tmp_path / "new.mp4", VIDEO)
    require_writable_file(tmp_path / "NEW.PNG", PICTURE)
    (tmp_path / "former").touch()
    require_writable_file(tmp_path / "former")


def test_a_device_is_refused_because_a_file_would_replace_it() -> None:
    with pytest.raises(CliError, match=r"/dev/null is a device or a pipe: name a file\.") as refused:
        require_writable_file(Path("/dev/null"))
    assert refused.value.code == USAGE


def test_another_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CliError, match=r"best\.gif has the wrong ending: name a file that ends in \.mp4\."):
        require_writable_file(tmp_path / "best.gif", VIDEO)
    with pytest.raises(CliError, match=r"policy has the wrong ending: name a file that ends in \.mp4 or \.gif\."):
        require_writable_file(tmp_path / "policy", (*VIDEO, ".gif"))


@pytest.mark.parametrize("exists", [True, False])
def test_a_place_that_cannot_be_written_is_refused(
    exists: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.json"
    if exists:
        file.touch()
    asked: list[Path] = []

    def denied(path: Path, mode: int) -> bool:
        asked.append(path)
        return mode != os.W_OK

    monkeypatch.setattr(os, "access", denied)  # the superuser may write everywhere
    with pytest.raises(CliError, match=r"x\.json cannot be written: choose a file or a directory that"):
        require_writable_file(file)
    assert asked == [file if exists else tmp_path]


def test_a_video_that_cannot_be_begun_names_its_file(tmp_path: Path) -> None:
    picture = np.zeros((144, 160, 3), np.uint8)
    place = tmp_path / "none" / "best.mp4"
    with pytest.raises(FileNotFoundError) as failed, VideoFile(place, 1) as video:
        video.add([picture], 4)
    assert failed.value.filename == str(place.with_name("best.mp4.partial"))
