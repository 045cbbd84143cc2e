"""Each image installs what deploy/hashes lists: the pinned versions, each with the hashes of its files."""

import re
from pathlib import Path

import pytest

from deploy.generate.hashes import FOLDER, packages, pinned
from deploy.generate.image_sizes import INSTALLED

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^(\S+)==(\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)


@pytest.mark.parametrize("image", INSTALLED)
def test_every_package_of_an_image_has_its_hashes(image: str) -> None:
    """After a change of a version or a dependency: `python -m deploy.generate.hashes`."""
    text = (FOLDER / f"{image}.txt").read_text()
    versions = pinned()
    assert {name: version for name, version, _ in BLOCK.findall(text)} == {
        name: versions[name] for name in packages(image)
    }
    assert BLOCK.sub("", text).strip().splitlines() == text.splitlines()[:2], "nothing else is in the file"


@pytest.mark.parametrize("image", INSTALLED)
def test_an_image_refuses_files_without_a_listed_hash(image: str) -> None:
    text = (ROOT / "deploy/Containerfile").read_text()
    stage = text.partition(f"FROM packages AS packages-{image}\n")[2].partition("\nFROM ")[0]
    installs = re.findall(r"pip install (.*?)(?: \\$| &&)", stage, re.MULTILINE)
    assert f"--no-deps --require-hashes -r /opt/hashes/{image}.txt" in installs
    others = [line for line in installs if "--require-hashes" not in line]
    assert all(line.startswith("--no-deps ") for line in others), "no dependency comes without a hash"
    assert [line for line in others if "torch==" not in line] == ["--no-deps --no-build-isolation -e ."]
