"""A request to a model is a span that names the model and its cost, and the server's own spans lie below it."""

import json

import httpx
import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from services.judge.telemetry import ROUTES
from shared.llm.port import CompletionRequest, RouteUnavailable
from shared.llm.route import RouteClient
from shared.llm.route_spec import RouteSpec

REQUEST = CompletionRequest({"model": "qwen", "messages": []}, 3, 1, "demo")
ANSWER = {
    "choices": [{"message": {"content": "4"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 900, "completion_tokens": 12},
}


class Server:
    """A model server that gives these answers in turn and keeps the headers of the requests."""

    def __init__(self, *answers: httpx.Response) -> None:
        self._answers = iter(answers)
        self.headers: list[httpx.Headers] = []
        spec = RouteSpec.model_validate({"url": "http://server.test/v1", "total_timeout_s": 30})
        self.route = RouteClient("state", spec, ROUTES)
        self.route.clients.transport = httpx.MockTransport(self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.headers.append(request.headers)
        return next(self._answers)


def answer() -> httpx.Response:
    return httpx.Response(200, content=json.dumps(ANSWER))


async def test_each_attempt_is_a_span_that_the_server_can_continue(spans: InMemorySpanExporter) -> None:
    server = Server(httpx.Response(503), answer())
    await server.route.complete(REQUEST)
    failed, answered = spans.get_finished_spans()
    assert (failed.name, answered.name) == ("chat qwen", "chat qwen")
    assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, "HTTP 503")
    assert answered.status.status_code is StatusCode.UNSET
    assert answered.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "qwen",
        "gen_ai.request.choice.count": 3,
        "zelda.route": "state",
        "gen_ai.usage.input_tokens": 900,
        "gen_ai.usage.output_tokens": 12,
    }
    sent = [headers["traceparent"] for headers in server.headers]
    assert [one.split("-")[1:3] for one in sent] == [
        [f"{one.context.trace_id:032x}", f"{one.context.span_id:016x}"] for one in (failed, answered)
    ]


async def test_a_refused_request_is_an_error_in_the_trace(spans: InMemorySpanExporter) -> None:
    with pytest.raises(RouteUnavailable):
        await Server(httpx.Response(401)).route.complete(REQUEST)
    (span,) = spans.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert "HTTP 401" in (span.status.description or "")


async def test_without_a_trace_a_request_carries_no_trace() -> None:
    server = Server(answer())
    await server.route.complete(REQUEST)
    assert "traceparent" not in server.headers[0]
