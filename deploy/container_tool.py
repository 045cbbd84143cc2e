"""Runs podman, docker and oc, and reads the digests that they print."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


class ImagesError(Exception):
    """A step failed; the message says which one and what to do."""


def installed_tool() -> str:
    """Podman, or docker; ImagesError without either."""
    program = next((name for name in ("podman", "docker") if shutil.which(name)), None)
    if program is None:
        raise ImagesError("There is neither podman nor docker on this machine: install one of them.")
    return program


def run(*command: str) -> str:
    """The standard output of a command that succeeded."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)  # noqa: S603 - fixed commands
    if done.returncode:
        raise ImagesError(f"`{' '.join(command)}` ended with code {done.returncode}: its messages are above.")
    return done.stdout


def repository_digest(program: str, image: str) -> str:
    """The digest under which a registry has an image that was pulled or pushed."""
    return digest_in(run(program, "inspect", "--format", "{{index .RepoDigests 0}}", image), image)


def digest_in(text: str, what: str) -> str:
    """The digest in a tool's output."""
    found = DIGEST.search(text)
    if found is None:
        raise ImagesError(f"{what}: no digest in {text.strip()[:200]!r}: push it to a registry that stores digests.")
    return found[0]
