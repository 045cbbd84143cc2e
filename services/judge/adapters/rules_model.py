"""A judge without a model: the rules of the rules judge, applied within the process. One vote is enough for it."""

import random

from services.judge.ports import Choice, Completion, CompletionRequest
from services.judge.rules_server.replies import reply


class RulesModel:
    """Answers like a model server, at once and for nothing."""

    async def complete(self, question: CompletionRequest) -> Completion:
        """One choice per vote asked for, all the same, because rules do not waver."""
        question.on_send()
        content = question.body["messages"][-1]["content"]
        text = content if isinstance(content, str) else content[-1]["text"]
        schema = question.body["response_format"]["json_schema"]["schema"]
        answer = reply(schema, text, 0.0, random.Random(question.seed))  # noqa: S311  # votes are no secrets
        return Completion(tuple(Choice(answer, "stop") for _ in range(question.n)), 0, 0, 0, 0.0)

    def seconds_since_response(self) -> float:
        """It always answers."""
        return 0.0
