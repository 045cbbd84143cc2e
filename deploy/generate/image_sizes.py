"""How large the packages of each service image are: `python -m deploy.generate.image_sizes`.

Resolves the extras of the Containerfile in the metadata of this environment and adds up the installed files. The base
image and the project's code (a few megabytes) are extra.
"""

import sys
from importlib.metadata import PackageNotFoundError, distribution, requires
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.sbom import megabytes

INSTALLED: Final = {
    "coordinator": "coordinator,tracing",
    "judge": "judge,tracing",
    "exporter": "exporter,tracing",
    "rewardmodel": "rewardmodel,tracing",
    "trainer": "trainer,cluster,judge,client,tracing",
}
# Megabytes. A larger image starts noticeably later on a fresh node: find the package that grew.
BUDGET: Final = {"coordinator": 80, "judge": 80, "exporter": 750, "rewardmodel": 1_250, "trainer": 2_100}


def closure(extras: str) -> set[str]:
    """Names of all packages that `zelda-rlaif[extras]` requires."""
    todo, seen, names = [Requirement(f"zelda-rlaif[{extras}]")], set[tuple[str, str]](), set[str]()
    while todo:
        wanted = todo.pop()
        name = canonicalize_name(wanted.name)
        names.add(name)
        for extra in ("", *wanted.extras):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            children = [Requirement(line) for line in requires(name) or []]
            todo += [child for child in children if child.marker is None or child.marker.evaluate({"extra": extra})]
    return names - {"zelda-rlaif"}


def size(service: str) -> float:
    """Megabytes of the packages in a service's image."""
    return sum(megabytes(distribution(name)) for name in closure(INSTALLED[service]))


def main() -> int:
    """Print one line per image. Returns 1 if an image exceeds its budget, 2 if this environment lacks a package."""
    try:
        sizes = {service: size(service) for service in INSTALLED}
    except PackageNotFoundError as error:
        sys.stderr.write(
            f"The package {error.name} is not installed, so its image cannot be measured: run `make setup`.\n"
        )
        return 2
    for service, found in sizes.items():
        sys.stdout.write(
            f"{service:<12} {found:6.0f} MB of {BUDGET[service]:>5} in {len(closure(INSTALLED[service]))} packages\n"
        )
    return int(any(found > BUDGET[service] for service, found in sizes.items()))


if __name__ == "__main__":
    sys.exit(main())
