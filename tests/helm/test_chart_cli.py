"""Helm's command line queries the cluster for optional APIs; the library cannot, so these tests need the program."""

import re
import shlex
import subprocess
from typing import Any

import pytest
import yaml

from tests.helm.custom_resources import FOLDER, problems
from tests.helm.rendering import CHART, NAMESPACE, PROFILES, RELEASE, ROOT
from tests.required_tools import find_tool, needs

HELM = find_tool("helm")
pytestmark = needs("helm")
GROUPS = {
    "monitoring.coreos.com/v1": {"ServiceMonitor", "PrometheusRule"},
    "grafana.integreatly.org/v1beta1": {"GrafanaDashboard"},
    "kueue.x-k8s.io/v1beta2": {"LocalQueue"},
}


def template(name: str, *more: str) -> list[dict[str, Any]]:
    command = [str(HELM), "template", RELEASE, str(CHART), "-n", NAMESPACE, "--kube-version", "1.30.0"]
    done = subprocess.run(
        [*command, "-f", str(CHART / f"values-{name}.yaml"), *more], capture_output=True, text=True, check=True
    )
    return [one for one in yaml.safe_load_all(done.stdout) if one]


@pytest.mark.parametrize("name", PROFILES)
def test_the_command_line_lints_and_renders_each_profile(name: str) -> None:
    values = str(CHART / f"values-{name}.yaml")
    lint = subprocess.run([str(HELM), "lint", "--strict", str(CHART), "-f", values], capture_output=True, text=True)
    assert lint.returncode == 0, lint.stdout
    assert template(name)


@pytest.mark.parametrize("page", ["docs/install-openshift.md", "deploy/README.md"])
def test_the_documented_administrator_command_runs(page: str) -> None:
    text = (ROOT / page).read_text().replace("\\\n", "")
    (arguments,) = re.findall(r"^helm (template .+)\| oc apply -f -", text, re.MULTILINE)
    done = subprocess.run([str(HELM), *shlex.split(arguments)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {one["kind"] for one in yaml.safe_load_all(done.stdout)} == {"ResourceFlavor", "ClusterQueue"}


@pytest.mark.parametrize("group", GROUPS)
def test_auto_follows_the_apis_of_the_cluster(group: str) -> None:
    without = {one["kind"] for one in template("dev")}
    having = {one["kind"] for one in template("dev", "--api-versions", group)}
    assert not GROUPS[group] & without
    assert GROUPS[group] <= having


@pytest.mark.parametrize("profile", ["openshift", "prod"])
@pytest.mark.parametrize(
    ("served", "expected"), [(["v1beta1"], "v1beta1"), (["v1beta1", "v1beta2"], "v1beta2"), ([], "v1beta2")]
)
def test_kueue_gets_objects_that_it_serves(profile: str, served: list[str], expected: str) -> None:
    """Red Hat's build serves v1beta2 from release 1.3 on (release notes of OpenShift 4.21, AI workloads). Values `on`
    without a cluster take the newest version."""
    apis = [word for one in served for word in ("--api-versions", f"kueue.x-k8s.io/{one}")]
    queues = ["--set", f"kueue.admin.enabled=true,apis.kueue={'auto' if served else 'on'}"]
    objects = template(profile, *apis, *queues)
    made = [one for one in objects if one["kind"] in ("LocalQueue", "ClusterQueue", "ResourceFlavor")]
    assert {(one["kind"], one["apiVersion"]) for one in made} == {
        (kind, f"kueue.x-k8s.io/{expected}") for kind in ("LocalQueue", "ClusterQueue", "ResourceFlavor")
    }
    (cluster,) = (one for one in objects if one["kind"] == "RayCluster")
    assert "kueue.x-k8s.io/queue-name" in cluster["metadata"]["labels"]
    if FOLDER.is_dir():
        assert [problems(one) for one in made] == [[], [], []]
