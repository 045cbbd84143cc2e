"""The span of one request to a model. A server that traces (vLLM, llm-d's router) adds its own spans as children.

Names and attributes follow OpenTelemetry's conventions for generative AI
(https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry.trace import Span, SpanKind

from shared.llm.call_outcome import CallOutcome
from shared.llm.port import Completion, CompletionRequest
from shared.telemetry.tracing import Attributes, fail, span, trace_context


@contextmanager
def request_span(route: str, request: CompletionRequest) -> Iterator[tuple[Span, Mapping[str, str]]]:
    """A span for one request; yields it and the headers that connect the server's spans to it."""
    model = str(request.body.get("model", ""))
    attributes: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": model,
        "gen_ai.request.choice.count": request.n,
        "zelda.route": route,
    }
    with span(f"chat {model}".rstrip(), SpanKind.CLIENT, attributes) as current:
        yield current, trace_context()


def end_with_answer(current: Span, answer: Completion | CallOutcome) -> None:
    """Record what the request cost, or why it failed."""
    if isinstance(answer, CallOutcome):
        fail(current, answer.detail)
        return
    for name, tokens in (("input", answer.prompt_tokens), ("output", answer.output_tokens)):
        if tokens is not None:
            current.set_attribute(f"gen_ai.usage.{name}_tokens", tokens)
