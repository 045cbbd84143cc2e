"""The answers of judges about the bank, one JSON line each: asked once, kept, and counted at any time."""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from services.judge.config import JudgesFile, JudgeSpec
from services.judge.domain.examples.chat import pair_examples, vote_examples
from services.judge.domain.prompts import rubric_message
from services.judge.domain.rubric import rubric_text
from shared.config.problems import first_problem
from shared.contracts.base import sha256
from shared.contracts.scores import DIMENSIONS, JudgeResult
from studies.json_lines import append_line, read_lines, split_lines
from studies.judges.bank import Bank
from studies.judges.variants import Variant

UNASKED: Final = ("route", "prices", "examples")
"""Fields of a judge that do not change its answers; of `examples`, the digest has their text."""


class AnswersError(ValueError):
    """The file is damaged, or holds answers of other judges or about another bank. The message says what to do."""


class Answer(BaseModel):
    """What the judges of one file said about one segment. `weighted` is None if they abstained.

    `facts_bytes` is the length of the text that they read, `seconds` the time until all had answered.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    segment: str
    variant: Variant = "plain"
    weighted: float | None
    weights: dict[str, float]
    facts_bytes: int = Field(ge=0)
    seconds: float = Field(ge=0)
    results: list[JudgeResult]


def judges_digest(file: JudgesFile) -> str:
    """Return the digest of what the judges are: models, settings and rubric, but not where they are served."""
    judges = [
        {
            **{name: value for name, value in spec.model_dump(mode="json").items() if name not in UNASKED},
            "rubric": rubric_message(spec.dimensions, pictures=spec.frames > 0, reason=spec.asking == "votes"),
            **_examples(spec),
        }
        for spec in file.judges
    ]
    return sha256(json.dumps([judges, file.weights.as_dict()], sort_keys=True).encode())


def _examples(spec: JudgeSpec) -> dict[str, Any]:
    """The examples in a judge's prompts, if it has any."""
    if not spec.examples:
        return {}
    reason = spec.asking == "votes"
    return {"examples": [*vote_examples(spec.dimensions, reason=reason), *pair_examples(reason=reason)]}


def rubric_digest() -> str:
    """Return the digest of this version's questions and anchors of all dimensions."""
    return sha256(rubric_text(DIMENSIONS).encode())


class AnswersFile:
    """The answers of one judges file: `answers.jsonl` in a folder, or `answers.jsonl.gz` as it is published.

    An answer is on disk before the next question is asked.
    """

    def __init__(
        self, folder: Path, digest: str, answers: Mapping[tuple[str, Variant], Answer], rubric: str | None = None
    ) -> None:
        """`rubric` is the rubric_digest of their rubric; None in files from before 2026-11-24, which do not say."""
        self.folder, self.digest, self.rubric = folder, digest, rubric
        self.answers = dict(answers)

    @classmethod
    def open(cls, folder: Path, file: JudgesFile, bank: Bank) -> Self:
        """Open the folder to add answers of these judges about this bank. Raises AnswersError if it holds others."""
        digest = judges_digest(file)
        if _source(folder) is None:
            append_line(plain(folder), _head(digest, [str(spec.model) for spec in file.judges], bank))
        found = cls.load(folder, bank)
        if found.digest != digest:
            raise AnswersError(
                f"{folder} holds the answers of other judges or of another rubric: give these judges another --name"
            )
        if not plain(folder).exists():
            plain(folder).write_bytes(gzip.decompress(packed(folder).read_bytes()))
        return found

    @classmethod
    def load(cls, folder: Path, bank: Bank) -> Self:
        """Read the answers of a folder. A last line that was cut off by a crash is dropped from the file.

        Raises AnswersError if the folder holds no answers, they are damaged, or they are about another bank.
        """
        source = _source(folder)
        if source is None:
            raise AnswersError(f"{folder} holds no answers: ask judges with `zelda judge bench`")
        lines = read_lines(source) if source == plain(folder) else split_lines(gzip.decompress(source.read_bytes()))
        try:
            head = json.loads(lines[0] if lines else "")
            answers = [Answer.model_validate_json(line) for line in lines[1:]]
            found = {(one.segment, one.variant): one for one in answers}
            kept = cls(folder, str(head["judges"]), found, head.get("rubric"))
            stated = head.get("bank")
        except ValidationError as error:
            raise AnswersError(f"{source} is damaged: {first_problem(error)}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise AnswersError(f"{source} does not begin with the judges that answered ({error})") from error
        kept._require_bank(bank, stated)
        return kept

    def _require_bank(self, bank: Bank, stated: str | None) -> None:
        """Raise AnswersError unless the answers are about this bank: other banks use the same names of segments.

        Files from before 2026-11-28 do not state their bank: they count as answers about the published one.
        """
        unknown = sorted({segment for segment, _ in self.answers} - {one.name for one in bank.segments})
        if unknown or (stated or Bank.load().digest) != bank.digest:
            which = f"{unknown[0]}, which the bank has not" if unknown else "another bank"
            raise AnswersError(
                f"{self.folder} answers about {which}: ask about this bank in another folder, with `zelda judge bench "
                "--out`"
            )

    def of(self, variant: Variant) -> dict[str, Answer]:
        """Return the answers about one variant by segment."""
        return {name: answer for (name, kind), answer in self.answers.items() if kind == variant}

    def add(self, answer: Answer) -> None:
        """Append an answer."""
        append_line(plain(self.folder), answer.model_dump_json())
        self.answers[answer.segment, answer.variant] = answer

    def pack(self) -> Path:
        """Write the compressed file, which equal answers make equal; return its path."""
        packed(self.folder).write_bytes(gzip.compress(plain(self.folder).read_bytes(), 9, mtime=0))
        return packed(self.folder)


def plain(folder: Path) -> Path:
    """The file that grows."""
    return folder / "answers.jsonl"


def packed(folder: Path) -> Path:
    """The file that is published."""
    return folder / "answers.jsonl.gz"


def has_answers(folder: Path) -> bool:
    """Whether a folder holds answers."""
    return _source(folder) is not None


def _source(folder: Path) -> Path | None:
    return next((path for path in (plain(folder), packed(folder)) if path.exists()), None)


def _head(digest: str, models: list[str], bank: Bank) -> str:
    head: dict[str, Any] = {"judges": digest, "models": models, "rubric": rubric_digest(), "bank": bank.digest}
    return json.dumps(head)
