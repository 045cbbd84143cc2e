"""docs/sizing.md counts the pods and containers that operators add to a release."""

from typing import Any

import pytest

from tests.helm.operators import kserve, kuberay
from tests.helm.quantities import amount
from tests.helm.rendering import ROOT, Object, merged, of_kind, profile, render

PAGE = (ROOT / "docs/sizing.md").read_text()


def models(platform: str) -> list[Object]:
    values: dict[str, Any] = merged(profile("prod"), {"platform": {"odhVersion": platform}})
    return of_kind(render(values), "LLMInferenceService")


def together(containers: list[Object], what: str) -> str:
    """Cores and memory of all containers as the page writes them."""
    if not all(what in one for one in containers):
        return "no limit"
    cores, memory = (sum(amount(one[what][name]) for one in containers) for name in ("cpu", "memory"))
    return f"{cores:.1f} / {memory / 2**30:.1f} GiB"


@pytest.mark.parametrize("platform", list(kserve.ROUTERS))
def test_the_routers_of_all_models_are_counted(platform: str) -> None:
    containers = kserve.ROUTERS[platform] * len(models(platform))
    row = f"| {platform} | {together(containers, 'requests')} | {together(containers, 'limits')} |"
    assert row in PAGE, f"write this row into docs/sizing.md: {row}"


def test_no_router_starts_a_tokenizer() -> None:
    """It would request a core and 4 GiB more for each model."""
    routers = [str(one["spec"]["router"]) for platform in kserve.ROUTERS for one in models(platform)]
    assert [one for one in routers if any(plugin in one for plugin in kserve.TOKENIZER_PLUGINS)] == []


def test_rays_proxy_is_counted() -> None:
    cluster = kuberay.clusters(render(merged(profile("openshift"), {"ray": {"authProxy": "on"}})))[0]
    head = kuberay.operated(cluster, kuberay.RELEASES["1.6.2"]).pods["head"]
    (proxy,) = (one for one in head["spec"]["containers"] if one["name"] == kuberay.PROXY)
    requests = proxy["resources"]["requests"]
    assert f"Ray's log-in proxy ({requests['cpu']} and {requests['memory'].replace('Mi', ' MiB')})" in PAGE
