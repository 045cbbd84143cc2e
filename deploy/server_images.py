"""Digests of the images that others publish: servers and proxies of the chart and of docker-compose.yaml."""

import sys
from collections.abc import Iterator
from typing import Any, Final

import yaml

from deploy.container_tool import ROOT, ImagesError, repository_digest, run

CHART: Final = ROOT / "charts/zelda-rlaif/values.yaml"
COMPOSE: Final = ROOT / "docker-compose.yaml"
OWN: Final = "zelda-rlaif-"


def chart_digests(program: str) -> dict[str, Any]:
    """Values that pin each image that the chart names with `name`, `tag` and `digest`."""
    values: dict[str, Any] = {}
    for path, image in _images(yaml.safe_load(CHART.read_text()), ()):
        if digest := _resolved(program, f"{image['name']}:{image['tag']}"):
            place = values
            for key in path:
                place = place.setdefault(key, {})
            place["digest"] = digest
    return values


def compose_digests(program: str) -> dict[str, Any]:
    """An override of docker-compose.yaml that pins each image of others."""
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    others = {name: service["image"] for name, service in services.items() if OWN not in service["image"]}
    pinned = {name: (image, _resolved(program, image)) for name, image in others.items()}
    return {"services": {name: {"image": f"{image}@{digest}"} for name, (image, digest) in pinned.items() if digest}}


def _images(values: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    if values.keys() >= {"name", "tag", "digest"}:
        yield path, values
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _images(value, (*path, key))


def _resolved(program: str, image: str) -> str | None:
    """The digest of a tag in its registry; None, with the reason on standard error, if it cannot be pulled.

    Images of parts that an installation switches off may need a log-in: they keep their tag.
    """
    try:
        run(program, "pull", image)
        return repository_digest(program, image)
    except ImagesError as error:
        sys.stderr.write(f"{image} keeps its tag: {error}\n")
        return None
