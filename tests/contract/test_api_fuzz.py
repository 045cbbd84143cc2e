"""Random requests from the OpenAPI document: every response has a documented status, and none is above 499."""

import asyncio
from collections import Counter
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

from services.coordinator.api.routes.gallery import SEGMENT
from services.coordinator.readmodels.service_logs import ServiceLogs
from tests.unit.coordinator.api_client import OPERATOR
from tests.unit.coordinator.harness import Harness

EXAMPLES = 60


@pytest.fixture(scope="module")
def operations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every documented operation except the endless stream, on a store with one run."""
    harness = Harness()
    asyncio.run(harness.create_run())
    path = tmp_path_factory.mktemp("api") / "tokens"
    harness.logs = ServiceLogs(path.parent)
    path.write_text(f"operator:{OPERATOR}\n")
    app = harness.app(path, requests_per_s=1e9, burst=10**9)
    schema: Any = schemathesis.openapi.from_asgi("/openapi.json", app).exclude(path_regex="events")
    found = [operation.ok() for operation in schema.get_all_operations()]
    return {f"{operation.method.upper()} {operation.path}": operation for operation in found}


@pytest.mark.parametrize(
    "name",
    [
        "POST /runs",
        "GET /runs",
        "GET /runs/{run}",
        "DELETE /runs/{run}",
        "POST /runs/{run}/stop",
        "POST /runs/{run}/resume",
        "GET /runs/{run}/epochs",
        "GET /runs/{run}/segments",
        "GET /runs/{run}/scores",
        "GET /runs/{run}/epochs/{epoch}/gallery",
        "GET /runs/{run}/epochs/{epoch}/rooms",
        f"GET {SEGMENT}",
        f"GET {SEGMENT}/frames/{{number}}",
        f"GET {SEGMENT}/video",
        f"GET {SEGMENT}/potential",
        "GET /runs/{run}/replies/{prompt}",
        "GET /runs/{run}/logs",
        "GET /runs/{run}/report",
        "GET /runs/{run}/now",
        "GET /runs/{run}/notes",
        "PUT /runs/{run}/notes",
        "GET /dead-letters",
        "POST /dead-letters/{number}/replay",
        "GET /session",
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_random_requests_get_documented_responses(operations: dict[str, Any], name: str) -> None:
    operation = operations[name]
    documented = {int(status) for status in operation.definition.raw["responses"]}
    responses: Counter[int] = Counter()

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
    @given(case=operation.as_strategy())
    def send(case: Any) -> None:
        case.headers = {**(case.headers or {}), "Authorization": f"Bearer {OPERATOR}"}
        response = case.call()
        responses[response.status_code] += 1
        assert response.status_code in documented, response.text[:300]

    send()
    assert sum(responses.values()) >= EXAMPLES // 2
    assert max(responses) < 500


def test_every_operation_is_fuzzed(operations: dict[str, Any]) -> None:
    (marker,) = [
        mark for mark in test_random_requests_get_documented_responses.pytestmark if mark.name == "parametrize"
    ]
    assert set(operations) == set(marker.args[1])
