"""Strange requests made from the OpenAPI document: no answer is an accident, and each status is a documented one."""

import asyncio
from collections import Counter
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

from services.coordinator.api.app import create_app
from services.coordinator.tokens import Tokens
from tests.unit.coordinator.door import OPERATOR
from tests.unit.coordinator.world import World

EXAMPLES = 60


@pytest.fixture(scope="module")
def operations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every documented operation but the endless stream, on a store that holds one run."""
    world = World()
    asyncio.run(world.ask())
    path = tmp_path_factory.mktemp("api") / "tokens"
    path.write_text(f"operator:{OPERATOR}\n")
    app = create_app(world.desk, Tokens(path), requests_per_s=1e9, burst=10**9)
    schema: Any = schemathesis.openapi.from_asgi("/openapi.json", app).exclude(path_regex="events")
    found = [operation.ok() for operation in schema.get_all_operations()]
    return {f"{operation.method.upper()} {operation.path}": operation for operation in found}


@pytest.mark.parametrize(
    "name",
    [
        "POST /runs",
        "GET /runs",
        "GET /runs/{run}",
        "POST /runs/{run}/stop",
        "POST /runs/{run}/resume",
        "GET /runs/{run}/epochs",
        "GET /runs/{run}/segments",
        "GET /runs/{run}/scores",
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_strange_requests_get_documented_answers(operations: dict[str, Any], name: str) -> None:
    operation = operations[name]
    documented = {int(status) for status in operation.definition.raw["responses"]}
    answers: Counter[int] = Counter()

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        case.headers = {**(case.headers or {}), "Authorization": f"Bearer {OPERATOR}"}
        answer = case.call()
        answers[answer.status_code] += 1
        assert answer.status_code in documented, answer.text[:300]

    ask()
    assert sum(answers.values()) >= EXAMPLES // 2
    assert max(answers) < 500


def test_no_operation_is_left_out(operations: dict[str, Any]) -> None:
    (marker,) = [mark for mark in test_strange_requests_get_documented_answers.pytestmark if mark.name == "parametrize"]
    assert set(operations) == set(marker.args[1])
