"""An option with a wrong value, or one that would be ignored, is refused by its name before any work."""

from pathlib import Path

import pytest

from cli import errors
from cli.__main__ import exit_code_of


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["explore", "vall"], errors.USAGE, "zelda: WORLD: choose garden, vale, realm or wild:NUMBER"),
        (["study", "vall"], errors.USAGE, "zelda: WORLD: choose garden, vale, realm or wild:NUMBER"),
        (["study", "--mode", "non"], errors.USAGE, "zelda: --mode: Input should be 'gain', 'potential'"),
        (["study", "-s", "shaping.mode=non"], errors.USAGE, "zelda: --set shaping.mode: Input should be 'gain'"),
        (["study", "--epochs", "0"], errors.USAGE, "zelda: --epochs: Input should be greater than or equal to 1."),
        (
            ["run", "start", "--idempotency-key", "ü", "--url", "http://x", "--token-file", "token"],
            errors.USAGE,
            "--idempotency-key ü: use ASCII characters, as HTTP headers do.",
        ),
        (["export", "segments", "m1", "--video", "x.gif"], errors.USAGE, "name a file that ends in .mp4."),
        (
            ["export", "segments", "m1", "--video", "x.mp4", "--to", "out"],
            errors.USAGE,
            "leave out --to and --video-only",
        ),
        (
            ["export", "segments", "m1", "--video", "x.mp4", "--video-only"],
            errors.USAGE,
            "leave out --to and --video-onl",
        ),
        (
            ["export", "dataset", "m1", "--to", "/dev/null"],
            errors.USAGE,
            "/dev/null is a device or a pipe: name a file.",
        ),
        (["judge", "compare", "m1", "a", "b", "--plot", "x.pdf"], errors.USAGE, "name a file that ends in .png."),
        (["policy", "export", "m1", "--to", "policy"], errors.USAGE, "name a file that ends in .npz."),
        (["policy", "play", "m1", "--video", "play.avi"], errors.USAGE, "name a file that ends in .mp4 or .gif."),
        (["trace", "m1", "e0001-r00-v03-0005-s000", "--epoch", "1"], errors.USAGE, "an epoch by --epoch, not both: "),
    ],
)
def test_an_option_is_refused_by_its_name(
    words: list[str],
    code: int,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code_of(words) == code
    said = capsys.readouterr().err
    assert said.startswith("zelda: ")
    assert sentence in said
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir()), "nothing is written"
