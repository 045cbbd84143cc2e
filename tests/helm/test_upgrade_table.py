"""The upgrade guide's table is computed from rendered differences, and its promises are those of the operators."""

import re

import pytest

from deploy.generate import upgrade_table
from tests.helm.operators import kueue
from tests.helm.rendering import CHART, ROOT, merged, named, profile, render

PAGE = ROOT / "docs/upgrade.md"


def rows() -> dict[str, list[str]]:
    text = PAGE.read_text().partition(upgrade_table.BEGIN)[2].partition(upgrade_table.END)[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "`" in line]
    return {first.strip("`"): rest for first, *rest in cells}


def test_the_table_is_current() -> None:
    assert PAGE.read_text() == upgrade_table.page(PAGE.read_text(), CHART), "run `python -m deploy.generate`"


@pytest.mark.parametrize("value", upgrade_table.CHANGES)
def test_a_row_agrees_with_kueue(value: str) -> None:
    _, change = upgrade_table.CHANGES[value]
    before = named(render(profile("openshift")), "RayCluster", "zelda-ray")
    after = named(render(merged(profile("openshift"), change)), "RayCluster", "zelda-ray")
    ends = kueue.admitted_again(before, after)
    assert rows()[value][-1] == ("resumes from its checkpoint" if ends else "continues")


@pytest.mark.parametrize(
    ("value", "pods"),
    [
        ("judges.votes", "judge"),
        ("log.level", "coordinator, exporter, judge, rewardmodel, trainer"),
        ("services.coordinator.replicas", "none"),
        ("runs.defaults", "coordinator"),
        ("ray.workers.min, max", "Ray, coordinator"),
        ("monitoring.*", "none"),
    ],
)
def test_a_change_replaces_no_pod_without_need(value: str, pods: str) -> None:
    assert rows()[value][1] == pods


def test_every_row_names_existing_values() -> None:
    known = set(re.findall(r"^\| `([A-Za-z.]+)` \|", (CHART / "README.md").read_text(), re.MULTILINE))
    for value in upgrade_table.CHANGES:
        first = re.escape(value.partition(",")[0]).replace(r"\*", r".+")
        assert [name for name in known if re.match(rf"{first}($|\.)", name)], value
