"""Build and push the five images under a unique tag, and write their digests to a values file: `make images`.

`python -m deploy.images --registry R` builds with podman or docker. It also resolves the tags of images that others
publish, for the chart and for compose (docker-compose.override.yaml, which compose reads by itself).
`--openshift NAMESPACE` builds nothing: it reads the digests of what deploy/openshift has built. Install with
`-f charts/zelda-rlaif/values-images.yaml`: then no node runs an older image of the same tag.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

import yaml

from deploy.container_tool import ROOT, ImagesError, digest_in, installed_tool, repository_digest, run
from deploy.server_images import chart_digests, compose_digests

VALUES: Final = ROOT / "charts/zelda-rlaif/values-images.yaml"
SERVICES: Final = ("coordinator", "trainer", "judge", "rewardmodel", "exporter")
INTERNAL: Final = "image-registry.openshift-image-registry.svc:5000"
OVERRIDE: Final = ROOT / "docker-compose.override.yaml"
HEAD: Final = "# Written by `python -m deploy.images`.\n"


def main(argv: list[str] | None = None) -> int:
    """Write the files and return 0, or explain on standard error and return 1."""
    arguments = _parser().parse_args(argv)
    try:
        if arguments.openshift:
            files = {arguments.output: of_builds(arguments.openshift)}
        else:
            program = arguments.tool or installed_tool()
            values = built(program, arguments.registry) | chart_digests(program)
            files = {arguments.output: values, arguments.compose: compose_digests(program)}
    except ImagesError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for file, content in files.items():
        file.write_text(HEAD + yaml.safe_dump(content, sort_keys=False))
        sys.stdout.write(f"wrote {file}\n")
    return 0


def built(program: str, registry: str) -> dict[str, object]:
    """Build and push every image; return the values that pin them."""
    tag = unique_tag()
    digests = {}
    for service in SERVICES:
        image = f"{registry}/zelda-rlaif-{service}:{tag}"
        run(program, "build", "-f", "deploy/Containerfile", "--target", service, "-t", image, ".")
        digests[service] = _push(program, image)
    return _values(registry, tag, digests)


def of_builds(namespace: str) -> dict[str, object]:
    """The values that pin the newest builds in a namespace of OpenShift."""
    tag = version()
    digests = {
        service: digest_in(
            run("oc", "-n", namespace, "get", "istag", f"zelda-rlaif-{service}:{tag}", "-o", _IMAGE), service
        )
        for service in SERVICES
    }
    return _values(f"{INTERNAL}/{namespace}", tag, digests)


_IMAGE: Final = "jsonpath={.image.metadata.name}"


def unique_tag() -> str:
    """The chart's version and the commit, with `dirty` if files differ from it."""
    commit = run("git", "rev-parse", "--short=12", "HEAD").strip()
    dirty = "-dirty" if run("git", "status", "--porcelain", "--untracked-files=no").strip() else ""
    return f"{version()}-{commit}{dirty}"


def version() -> str:
    """The images' version, which is the chart's appVersion."""
    return str(yaml.safe_load((ROOT / "charts/zelda-rlaif/Chart.yaml").read_text())["appVersion"])


def _values(registry: str, tag: str, digests: dict[str, str]) -> dict[str, object]:
    return {"images": {"registry": registry, "tag": tag, "digests": digests}}


def _push(program: str, image: str) -> str:
    """Push an image and return its digest in the registry."""
    if Path(program).name == "docker":
        run(program, "push", image)
        return repository_digest(program, image)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "digest"
        run(program, "push", "--digestfile", str(file), image)
        return digest_in(file.read_text(), image)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m deploy.images", description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--registry", help="host and path to push to, e.g. registry.example.com/zelda")
    where.add_argument("--openshift", metavar="NAMESPACE", help="read the digests of the builds there")
    parser.add_argument("--tool", help="podman or docker; default: the first that is installed")
    parser.add_argument("--output", type=Path, default=VALUES, help=f"values file; default: {VALUES.relative_to(ROOT)}")
    parser.add_argument(
        "--compose", type=Path, default=OVERRIDE, help=f"override of compose; default: {OVERRIDE.relative_to(ROOT)}"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
