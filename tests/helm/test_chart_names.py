"""Names: two releases share none, long ones stay apart and short enough, and selectors never change."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.helm.rendering import PROFILES, Object, merged, of_kind, profile, render
from tests.helm.test_chart_jobs import chart_of_version
from tests.helm.test_chart_objects import EVERYTHING, switched

CLUSTER_WIDE = ("ClusterQueue", "ResourceFlavor", "ClusterRole", "ClusterRoleBinding", "Namespace")
Identity = tuple[str, str, str]
# KubeRay refuses longer ones; it and KServe append to these names.
LIMITS = {"RayCluster": 53, "RayJob": 47, "LLMInferenceService": 50, "Service": 63, "StatefulSet": 52}


MODELS_OF_OTHERS: dict[str, Any] = {
    "judges": {"mode": "llmd"},
    "llm": {"enabled": False, "shared": {"namespace": "models", "createRoleBinding": True}},
}


def everything(name: str) -> dict[str, Any]:
    """A profile with each optional object. The administrator's quota is separate and shared on purpose."""
    values = merged(merged(profile(name), switched("on")), EVERYTHING)
    return merged(values, {"kueue": {"admin": {"enabled": False}}})


def identities(objects: list[Object], namespace: str) -> set[Identity]:
    """(kind, namespace, name); objects of the whole cluster have no namespace, and some are in another release's."""
    return {
        (
            one["kind"],
            "" if one["kind"] in CLUSTER_WIDE else one["metadata"].get("namespace", namespace),
            one["metadata"]["name"],
        )
        for one in objects
    }


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("zelda", "one"), ("link", "one")),
        (("zelda", "one"), ("zelda", "two")),
        (("training-of-the-oracle-of-seasons-a", "one"), ("training-of-the-oracle-of-seasons-b", "one")),
    ],
    ids=["one namespace", "two namespaces", "names that begin alike"],
)
@pytest.mark.parametrize("models", ["own models", "shared models"])
def test_two_releases_share_no_name(name: str, first: tuple[str, str], second: tuple[str, str], models: str) -> None:
    """With shared models both releases make their permission in the models' namespace."""
    values = everything(name) if models == "own models" else merged(everything(name), MODELS_OF_OTHERS)
    made = [
        identities(render(values, release=release, namespace=namespace), namespace)
        for release, namespace in (first, second)
    ]
    assert made[0] & made[1] == set()
    assert ("models" in {namespace for _, namespace, _ in made[0]}) == (models == "shared models")


@pytest.mark.parametrize("name", PROFILES)
def test_controllers_can_append_to_every_name(name: str) -> None:
    for one in render(everything(name), release="training-of-the-oracle-of-seasons-a"):
        text = one["metadata"]["name"]
        assert len(text) <= LIMITS.get(one["kind"], 63), text
        assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", text), text


def test_a_short_release_name_stays_as_it_is() -> None:
    names = {one["metadata"]["name"] for one in of_kind(render(profile("dev")), "Deployment")}
    assert "zelda-coordinator" in names
    longest = "z" * 30
    assert {one["metadata"]["name"] for one in of_kind(render(profile("dev"), release=longest), "Deployment")} == {
        name.replace("zelda", longest, 1) for name in names
    }


def selectors(objects: list[Object]) -> dict[str, Any]:
    return {one["metadata"]["name"]: one["spec"]["selector"] for one in of_kind(objects, "Deployment", "StatefulSet")}


def test_another_name_in_labels_keeps_the_selectors() -> None:
    """Kubernetes refuses a changed selector, so that the upgrade would fail."""
    assert selectors(render(profile("dev") | {"nameOverride": "oracle"})) == selectors(render(profile("dev")))


def test_a_version_with_a_build_number_gives_valid_labels(tmp_path: Path) -> None:
    """`helm package --version 0.1.0+abc` writes such a version; Kubernetes allows no plus sign in a label."""
    for one in render(profile("dev"), chart_of_version("0.1.0+abc", tmp_path)):
        for label, value in one["metadata"]["labels"].items():
            assert re.fullmatch(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?", value), f"{label}: {value}"
