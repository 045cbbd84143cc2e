"""Build and push the five images under a unique tag, and write their digests to a values file: `make images`.

`python -m deploy.images --registry R` builds with podman or docker. `--openshift NAMESPACE` builds nothing: it reads
the digests of what deploy/openshift has built. Install with `-f charts/zelda-rlaif/values-images.yaml`: then no node
runs an older image of the same tag.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[1]
VALUES: Final = ROOT / "charts/zelda-rlaif/values-images.yaml"
SERVICES: Final = ("coordinator", "trainer", "judge", "rewardmodel", "exporter")
INTERNAL: Final = "image-registry.openshift-image-registry.svc:5000"
DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


class ImagesError(Exception):
    """A step failed; the message says which one and what to do."""


def main(argv: list[str] | None = None) -> int:
    """Write the values file and return 0, or explain on standard error and return 1."""
    arguments = _parser().parse_args(argv)
    try:
        values = of_builds(arguments.openshift) if arguments.openshift else built(arguments.registry, arguments.tool)
    except ImagesError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    arguments.output.write_text(f"# Written by `python -m deploy.images`.\n{yaml.safe_dump(values, sort_keys=False)}")
    sys.stdout.write(f"wrote {arguments.output}\n")
    return 0


def built(registry: str, tool: str | None) -> dict[str, object]:
    """Build and push every image; return the values that pin them."""
    program = tool or next((name for name in ("podman", "docker") if shutil.which(name)), None)
    if program is None:
        raise ImagesError("There is neither podman nor docker on this machine: install one of them.")
    tag = unique_tag()
    digests = {}
    for service in SERVICES:
        image = f"{registry}/zelda-rlaif-{service}:{tag}"
        _run(program, "build", "-f", "deploy/Containerfile", "--target", service, "-t", image, ".")
        digests[service] = _push(program, image)
    return _values(registry, tag, digests)


def of_builds(namespace: str) -> dict[str, object]:
    """The values that pin the newest builds in a namespace of OpenShift."""
    tag = version()
    digests = {
        service: _digest(
            _run("oc", "-n", namespace, "get", "istag", f"zelda-rlaif-{service}:{tag}", "-o", _IMAGE), service
        )
        for service in SERVICES
    }
    return _values(f"{INTERNAL}/{namespace}", tag, digests)


_IMAGE: Final = "jsonpath={.image.metadata.name}"


def unique_tag() -> str:
    """The chart's version and the commit, with `dirty` if files differ from it."""
    commit = _run("git", "rev-parse", "--short=12", "HEAD").strip()
    dirty = "-dirty" if _run("git", "status", "--porcelain", "--untracked-files=no").strip() else ""
    return f"{version()}-{commit}{dirty}"


def version() -> str:
    """The images' version, which is the chart's appVersion."""
    return str(yaml.safe_load((ROOT / "charts/zelda-rlaif/Chart.yaml").read_text())["appVersion"])


def _values(registry: str, tag: str, digests: dict[str, str]) -> dict[str, object]:
    return {"images": {"registry": registry, "tag": tag, "digests": digests}}


def _push(program: str, image: str) -> str:
    """Push an image and return its digest in the registry."""
    if Path(program).name == "docker":
        _run(program, "push", image)
        return _digest(_run(program, "inspect", "--format", "{{index .RepoDigests 0}}", image), image)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "digest"
        _run(program, "push", "--digestfile", str(file), image)
        return _digest(file.read_text(), image)


def _digest(text: str, what: str) -> str:
    found = DIGEST.search(text)
    if found is None:
        raise ImagesError(f"{what}: no digest in {text.strip()[:200]!r}: push it to a registry that stores digests.")
    return found[0]


def _run(*command: str) -> str:
    """The standard output of a command that succeeded."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)  # noqa: S603 - fixed commands
    if done.returncode:
        raise ImagesError(f"`{' '.join(command)}` ended with code {done.returncode}: its messages are above.")
    return done.stdout


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m deploy.images", description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--registry", help="host and path to push to, e.g. registry.example.com/zelda")
    where.add_argument("--openshift", metavar="NAMESPACE", help="read the digests of the builds there")
    parser.add_argument("--tool", help="podman or docker; default: the first that is installed")
    parser.add_argument("--output", type=Path, default=VALUES, help=f"values file; default: {VALUES.relative_to(ROOT)}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
