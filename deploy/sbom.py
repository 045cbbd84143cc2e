"""Prints a CycloneDX 1.6 bill of materials of this Python environment. Standard library only: it runs in image builds.

`python deploy/sbom.py > sbom.json`; with `--size` it prints the megabytes of the installed files instead.
(https://cyclonedx.org/docs/1.6/json/)
"""

import json
import sys
from importlib.metadata import Distribution, distributions
from typing import Any

MEGABYTE = 1_000_000


def licence(distribution: Distribution) -> str:
    """The licence that a package states: as an SPDX expression, by its classifiers, or in the first line of a text."""
    fields = distribution.metadata
    known = [text.split(" :: ")[-1] for text in fields.get_all("Classifier") or [] if text.startswith("License :: ")]
    stated = [*(fields.get_all("License-Expression") or []), "; ".join(known), *(fields.get_all("License") or [])]
    return next((text.strip().splitlines()[0][:100] for text in stated if text.strip()), "unknown")


def component(distribution: Distribution) -> dict[str, Any]:
    """One package in CycloneDX format."""
    name, version = distribution.metadata["Name"], distribution.version
    return {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name.lower().replace('_', '-')}@{version}",
        "licenses": [{"license": {"name": licence(distribution)}}],
    }


def bill(packages: list[Distribution]) -> dict[str, Any]:
    """The whole document, in a fixed order, so that two builds of the same environment agree."""
    components = sorted(
        (component(package) for package in packages), key=lambda one: (one["name"].lower(), one["version"])
    )
    subject = {"type": "application", "name": "zelda-rlaif"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": subject},
        "components": components,
    }


def megabytes(package: Distribution) -> float:
    """Size of a package's files on disk; missing files count 0."""
    paths = [package.locate_file(file) for file in package.files or []]
    return sum(path.stat().st_size for path in paths if path.is_file()) / MEGABYTE  # type: ignore[attr-defined]


def main(arguments: list[str]) -> int:
    """Print the bill, or with `--size` the sum of all sizes."""
    packages = list(distributions())
    if "--size" in arguments:
        sys.stdout.write(f"{sum(megabytes(package) for package in packages):.0f} MB in {len(packages)} packages\n")
    else:
        sys.stdout.write(json.dumps(bill(packages), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
