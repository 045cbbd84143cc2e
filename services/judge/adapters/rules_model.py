"""A judge without a model: the rules of the rules judge, applied in this process. It needs one vote only."""

import random

from services.judge.rules_server.replies import reply
from shared.llm.port import Choice, Completion, CompletionRequest


class RulesModel:
    """Answers like a model server, immediately and free of charge."""

    async def complete(self, request: CompletionRequest) -> Completion:
        """Return `n` equal choices: rules are deterministic."""
        request.on_send()
        content = request.body["messages"][-1]["content"]
        text = content if isinstance(content, str) else content[-1]["text"]
        schema = request.body["response_format"]["json_schema"]["schema"]
        rng = random.Random(request.seed)  # noqa: S311  # votes are no secrets
        vote = reply(schema, text, 0.0, rng)
        return Completion(tuple(Choice(vote, "stop") for _ in range(request.n)), 0, 0, 0, 0.0)

    def choices_per_request(self, wanted: int) -> int:
        """Return all: choices cost nothing."""
        return wanted

    @property
    def call_limit_s(self) -> float:
        """Return 1: the rules take milliseconds."""
        return 1.0

    def seconds_since_response(self) -> float:
        """Return 0: the rules always answer."""
        return 0.0
