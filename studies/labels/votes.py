"""Reads the labels of a language model: its answers about the bank, as `zelda judge bench` keeps them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shared.contracts.base import sha256
from shared.contracts.ids import Digest
from shared.contracts.scores import DIMENSIONS
from studies.judges.answers import Answer, AnswersError, AnswersFile, rubric_digest
from studies.judges.bank import Bank, BankSegment
from studies.plan import InvalidStudy

HALF: Final = "dev"  # the half `test` stays unseen: it says how good the model is
MIN_LABELLED: Final = 60  # segments of a world: as many as the arm `judges` has after its first epoch


@dataclass(frozen=True, slots=True)
class ModelVotes:
    """The judged segments of the worlds of a study, by world, and the answers about them by segment."""

    segments: dict[str, list[BankSegment]]
    answers: dict[str, Answer]

    @property
    def digest(self) -> Digest:
        """SHA-256 of the answers."""
        lines = sorted(answer.model_dump_json() for answer in self.answers.values())
        return Digest(sha256("\n".join(lines).encode()))


def read_votes(path: Path, bank: Bank, worlds: Sequence[str]) -> ModelVotes:
    """Read the answers about the half HALF in these worlds; InvalidStudy if they cannot label a study of them."""
    try:
        kept = AnswersFile.load(path.parent if path.is_file() else path, bank)
    except AnswersError as error:
        raise InvalidStudy(f"--labels: {error}.") from error
    answers = kept.of("plain")
    _check(path, kept, answers)
    found = {world: _judged(bank, answers, world) for world in worlds}
    for world, segments in found.items():
        _check_number(path, world, len(segments), len(_of_world(bank, world)))
    return ModelVotes(found, {one.name: answers[one.name] for segments in found.values() for one in segments})


def _check(path: Path, kept: AnswersFile, answers: dict[str, Answer]) -> None:
    results = [result for answer in answers.values() for result in answer.results]
    dimensions = {name for result in results for name in result.dimensions}
    if kept.rubric not in (None, rubric_digest()) or not dimensions <= set(DIMENSIONS):
        raise InvalidStudy(
            f"--labels: {path} holds votes by another rubric than this version's: ask again with `zelda judge bench`."
        )
    if results and all(result.model == "rules" for result in results):
        raise InvalidStudy(f"--labels: {path} holds the rules judge's votes: name those of a language model.")


def _check_number(path: Path, world: str, judged: int, known: int) -> None:
    if not known:
        raise InvalidStudy(
            f"--labels: the bank has no segment of {world}: the arms of a bank need a world of its half dev."
        )
    if judged < MIN_LABELLED:
        raise InvalidStudy(
            f"--labels: {path} judges {judged} of {known} segments of {world} in the half {HALF}, a reward model needs "
            f"{min(MIN_LABELLED, known)}: go on with `zelda judge bench --judges FILE --half {HALF}`."
        )


def _of_world(bank: Bank, world: str) -> list[BankSegment]:
    return [one for one in bank.half(HALF) if bank.episodes[one.episode].world == world]


def _judged(bank: Bank, answers: dict[str, Answer], world: str) -> list[BankSegment]:
    return [one for one in _of_world(bank, world) if one.name in answers and answers[one.name].weighted is not None]
