"""The labels of a study's arms: read and checked before the first trial, and recorded in the study's folder."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cli.console import overwrite_line, print_status
from studies.arms import ARMS
from studies.plan import InvalidStudy, StudyPlan

if TYPE_CHECKING:
    from studies.judges.bank import Bank
    from studies.labels.votes import ModelVotes


@dataclass(frozen=True, slots=True)
class LabelledPlan:
    """A plan with the labels that its arms need, and what is to be recorded for them; None: nothing."""

    plan: StudyPlan
    votes: "tuple[Bank, ModelVotes] | None" = None

    def record(self, folder: Path) -> None:
        """Record the labelled segments of the bank in the study's folder; InvalidStudy if they cannot be made again."""
        if self.votes is None:
            return
        from studies.judges.bank import BankError
        from studies.labels.bank_store import bank_store, record_bank

        bank, votes = self.votes
        print_status(f"Recording {len(votes.answers)} labelled segments of the bank.")
        try:
            asyncio.run(record_bank(bank_store(folder), bank, votes, _report()))
        except BankError as error:
            raise InvalidStudy(f"{error}.") from error
        finally:
            overwrite_line("")


def read_labels(plan: StudyPlan, path: Path | None, accuracy: float) -> LabelledPlan:
    """Read what the plan's arms need. `accuracy` is that of `rules-noisy`; InvalidStudy without usable labels."""
    banked = [name for name in plan.arms if ARMS[name].bank is not None]
    if banked and path is None:
        raise InvalidStudy(
            f"The arm {banked[0]} needs labels: name a language model's answers about the bank, e.g. --labels "
            "runs/bench/NAME."
        )
    if path is not None and not banked:
        raise InvalidStudy("--labels: no arm of this study reads it; add --arms llm,rules-bank,llm-shuffled.")
    if not banked and "rules-noisy" not in plan.arms:
        return LabelledPlan(plan)
    from studies.judges.bank import Bank
    from studies.labels.noise import noise_for
    from studies.labels.votes import read_votes

    bank, found = Bank.load(), plan.labels
    if "rules-noisy" in plan.arms:
        found = found.model_copy(update={"noisy_accuracy": accuracy, "noise": noise_for(accuracy, bank)})
    if path is None:
        return LabelledPlan(plan.model_copy(update={"labels": found}))
    votes = read_votes(path, bank, plan.worlds)
    found = found.model_copy(update={"votes": votes.digest, "source": str(path)})
    return LabelledPlan(plan.model_copy(update={"labels": found}), (bank, votes))


def _report() -> Callable[[int, int], None]:
    return lambda done, total: overwrite_line(f"{done} of {total} segments recorded")
