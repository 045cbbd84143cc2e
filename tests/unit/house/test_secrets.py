"""No tracked file holds a secret: a key, a token of a known service, or a private key."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SECRETS = {
    "private key": re.compile(rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----\s+[A-Za-z0-9+/=]{40}"),
    "AWS key id": re.compile(rb"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    "GitHub token": re.compile(rb"\bgh[pousr]_[A-Za-z0-9]{36}\b"),
    "Slack token": re.compile(rb"\bxox[abprs]-[A-Za-z0-9-]{20,}"),
    "model provider's key": re.compile(rb"\b(?:sk|hf|nvapi)[-_][A-Za-z0-9_-]{32,}\b"),
    "signed token": re.compile(rb"\beyJ[A-Za-z0-9_-]{20,}\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}"),
}
PLANTED = {
    "private key": b"-----BEGIN EC PRIVATE KEY-----\n" + b"A" * 48,
    "AWS key id": b"key=" + b"AKIA" + b"B" * 16,
    "GitHub token": b"gh" + b"p_" + b"c" * 36,
    "Slack token": b"xox" + b"b-" + b"1" * 24,
    "model provider's key": b"s" + b"k-" + b"d" * 40,
    "signed token": b"ey" + b"J" + b"e" * 24 + b".ey" + b"J" + b"f" * 24 + b"." + b"g" * 24,
}


def found(content: bytes) -> list[str]:
    """Kinds of secrets in these bytes."""
    return [kind for kind, pattern in SECRETS.items() if pattern.search(content)]


def test_no_tracked_file_holds_a_secret() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    files = [ROOT / name.decode() for name in listed.split(b"\0") if name]
    assert len(files) > 500
    assert {str(file): kinds for file in files if file.is_file() and (kinds := found(file.read_bytes()))} == {}


@pytest.mark.parametrize("kind", SECRETS)
def test_a_planted_secret_is_found(kind: str) -> None:
    assert found(PLANTED[kind]) == [kind]
