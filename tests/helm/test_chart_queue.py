"""What waits for quota and who makes the quota: the administrator's objects are none of the release's."""

import re

import yaml

from tests.helm.rendering import CHART, ROOT, merged, profile, render, render_files
from tests.helm.test_chart_objects import switched

ADMIN = {"kueue": {"admin": {"enabled": True}}}
QUOTA = {"ResourceFlavor", "ClusterQueue"}


def test_the_documented_file_of_the_administrator_holds_nothing_of_the_release() -> None:
    (name,) = re.findall(r"kueue\.admin\.enabled=true -s (\S+)", (ROOT / "docs/install-openshift.md").read_text())
    values = merged(profile("openshift"), switched("on"))
    text = render_files(merged(values, ADMIN))[f"{CHART.name}/{name}"]
    assert {one["kind"] for one in yaml.safe_load_all(text) if one} == QUOTA
    assert not QUOTA & {one["kind"] for one in render(values)}
