"""Answers of models that a test gives itself."""

from concurrent.futures import Future

from services.trainer.planning.question import ModelAnswer, Question


class ByHand:
    """An AnswerSource that a test answers."""

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.futures: list[Future[ModelAnswer]] = []

    def submit(self, question: Question) -> "Future[ModelAnswer]":
        self.asked.append(question)
        self.futures.append(Future())
        return self.futures[-1]
