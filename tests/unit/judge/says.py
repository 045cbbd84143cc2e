"""A model whose replies a test decides: tests/contract/test_models.py holds it to what real ones do."""

from services.judge.ports import Answer, Choice, Question


class Says:
    """A model that gives the same replies to every question, first those given."""

    def __init__(self, *choices: Choice) -> None:
        self.choices = choices
        self.asked: list[int] = []

    async def ask(self, question: Question) -> Answer:
        question.sending()
        self.asked.append(question.n)
        return Answer(self.choices[: question.n], 900, 400, 60, 0.1)

    def silent_s(self) -> float:
        return 0.0
