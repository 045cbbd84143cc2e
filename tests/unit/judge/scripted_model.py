"""A model with scripted replies. tests/contract/test_models.py checks that it behaves like a real one."""

from shared.llm.port import Choice, Completion, CompletionRequest


class ScriptedModel:
    """A model that returns the same choices for every request."""

    def __init__(self, *choices: Choice) -> None:
        self.choices = choices
        self.asked: list[int] = []

    async def complete(self, question: CompletionRequest) -> Completion:
        question.on_send()
        self.asked.append(question.n)
        return Completion(self.choices[: question.n], 900, 400, 60, 0.1)

    def choices_per_request(self, wanted: int) -> int:
        return wanted

    @property
    def call_limit_s(self) -> float:
        return 60.0

    def seconds_since_response(self) -> float:
        return 0.0
