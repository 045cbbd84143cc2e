"""Asks the models of a planner file, one question after the other, and keeps each reply before the next question."""

import asyncio
import hashlib
import json
import time
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from services.trainer.planning.model_service import ModelService, request_body
from services.trainer.planning.planner_file import PlannerFile
from services.trainer.planning.question import AnswerSource, ModelAnswer, Question, answered
from shared.contracts.ids import RunId
from shared.errors import ZeldaError
from studies.json_lines import append_line, read_lines
from studies.plan import InvalidStudy

ATTEMPTS: Final = 3
MAX_PAUSE_S: Final = 30.0
DIGITS: Final = 3  # of seconds, also before they are kept: a repeated command gives equal figures


class ModelAway(ZeldaError):
    """A model gives no answers. The message is one sentence."""


class ReplyFile:
    """Replies as JSON lines. A question is the whole request, so another model, prompt or schema asks again."""

    def __init__(self, path: Path) -> None:
        """Read what is there; a last line that was cut off is dropped. Raises InvalidStudy if another is damaged."""
        self._path = path
        self._replies: dict[str, dict[str, Any]] = {}
        for number, line in enumerate(read_lines(path), 1):
            try:
                reply = json.loads(line)
                self._replies[reply["key"]] = reply
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidStudy(
                    f"{path}, line {number} is no reply: delete the line, which is asked again"
                ) from error

    def find(self, key: str) -> ModelAnswer | None:
        """The kept answer."""
        reply = self._replies.get(key)
        return None if reply is None else ModelAnswer(reply["status"], reply["reply"], seconds=reply["seconds"])

    def add(self, key: str, question: Question, answer: ModelAnswer) -> None:
        """Keep an answer."""
        reply = {
            "key": key,
            "place": question.place,
            "mode": question.mode,
            "status": answer.status,
            "reply": answer.text,
            "seconds": answer.seconds,
        }
        self._replies[key] = reply
        append_line(self._path, json.dumps(reply))


class AskedModels:
    """An AnswerSource whose answers come immediately: the game stands still while a model thinks."""

    def __init__(self, file: PlannerFile, kept: ReplyFile) -> None:
        self._file, self._kept = file, kept
        self._service = ModelService(file, RunId("plans"))
        self._loop = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run(self._service.close())
        self._loop.close()

    def submit(self, question: Question) -> "Future[ModelAnswer]":
        """Answer from the file, or ask. Raises ModelAway when a model gives no answer in several attempts."""
        body = request_body(question, self._file.routes[question.mode])
        key = hashlib.sha256(json.dumps([body, question.seed], sort_keys=True).encode()).hexdigest()
        found = self._kept.find(key)
        if found is None:
            found = self._ask(question)
            self._kept.add(key, question, found)
        return answered(found)

    def _ask(self, question: Question) -> ModelAnswer:
        for left in reversed(range(ATTEMPTS)):
            answer = self._loop.run(self._service.answer(question))
            if answer.status in ("answered", "invalid"):
                return replace(answer, seconds=round(answer.seconds, DIGITS))
            if left:
                time.sleep(min(answer.pause_s, MAX_PAUSE_S))
        raise ModelAway(
            f"the model of route {question.mode} gives no answer ({answer.status}: {answer.detail}): check its address "
            "and time limits in the planner file, or remove the route; the replies so far are kept"
        )


class TextShown:
    """Passes questions on as if the game showed this text; see AnswerSource."""

    def __init__(self, models: AnswerSource, text: str = "") -> None:
        self._models, self.text = models, text

    def submit(self, question: Question) -> "Future[ModelAnswer]":
        """Ask with the text in place of the dialog's own."""
        facts = json.loads(question.facts)
        choosing = bool(facts["dialog"] and facts["dialog"]["choosing"])
        facts["dialog"] = {"text": self.text, "choosing": choosing}
        return self._models.submit(replace(question, facts=json.dumps(facts, separators=(",", ":"))))
