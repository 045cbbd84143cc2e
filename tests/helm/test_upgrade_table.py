"""The upgrade guide's table is computed from rendered differences, and its promises are those of the operators."""

import re

import pytest

from deploy.generate import upgrade_table
from deploy.generate.values import Values
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
        ("judges.votes, judges, weights, phases", "judge"),
        ("log.level, format", "coordinator, exporter, judge, rewardmodel, trainer"),
        ("services.*.replicas", "none"),
        ("runs.defaults, fromWorkers, envsPerRunner, stepsPerEnv", "coordinator"),
        ("ray.workers.min, max", "Ray, coordinator"),
        ("monitoring.*", "none"),
    ],
)
def test_a_change_replaces_no_pod_without_need(value: str, pods: str) -> None:
    assert rows()[value][1] == pods


def covers(row: str, value: str) -> bool:
    """Whether a row's values, or their groups, contain this one. A row for one service or image stands for others."""
    first, *more = row.split(", ")
    group = first.rpartition(".")[0]
    patterns = [first, *(one if one.split(".")[0] in TOP else f"{group or first.split('.')[0]}.{one}" for one in more)]
    found = [re.escape(one).replace(r"\*", ".+") for one in patterns]
    found = [
        one.replace("services\\.judge", r"services\.[a-z]+").replace("digests\\.judge", r"digests\.[a-z]+")
        for one in found
    ]
    return any(re.match(rf"{one}($|\.)", value) for one in found)


TOP = {str(field.alias) for field in Values.model_fields.values()}


def documented() -> set[str]:
    return set(re.findall(r"^\| `([A-Za-z]+(?:\.[A-Za-z]+)*)` \|", (CHART / "README.md").read_text(), re.MULTILINE))


def test_every_value_has_a_row_or_a_reason() -> None:
    rows_and_reasons = [*upgrade_table.CHANGES, *upgrade_table.NOT_CHANGED]
    values = {value for value in documented() if value.split(".")[0] in TOP}
    assert len(values) > 200
    assert sorted(value for value in values if not any(covers(row, value) for row in rows_and_reasons)) == []


def test_every_reason_names_existing_values() -> None:
    for row in upgrade_table.NOT_CHANGED:
        assert [value for value in documented() if covers(row, value)], row


def test_every_row_names_existing_values() -> None:
    known = documented()
    for value in upgrade_table.CHANGES:
        first = re.escape(value.partition(",")[0]).replace(r"\*", r".+")
        assert [name for name in known if re.match(rf"{first}($|\.)", name)], value
