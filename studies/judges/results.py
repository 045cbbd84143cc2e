"""The results file of the benchmark, and the rows that the answers of a folder give."""

import json
from datetime import date
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.config.problems import first_problem
from studies.judges.answers import AnswersError, AnswersFile
from studies.judges.bank import Bank, Half
from studies.judges.calibration import SpreadCalibration, fit
from studies.judges.orders import gained_more
from studies.judges.sample import JudgedSample, judged_sample, length_only, noise_for_accuracy, noisy, pairs_accuracy
from studies.judges.table import BenchRow, Evidence, row_of
from studies.whole_file import write_whole

RULES: Final = "rules"
LENGTH: Final = "length-only"
NOISY: Final = "rules-noisy"
FEW: Final = 20  # segments of the other half; a calibration on fewer means nothing
OTHER: Final[dict[Half, Half]] = {"dev": "test", "test": "dev"}


class JudgeResults(BaseModel):
    """The file: one row per judge, all on the same half."""

    model_config = ConfigDict(extra="forbid")

    command: str
    date: date
    commit: str
    half: Half
    note: str = ""
    rows: dict[str, BenchRow] = Field(default_factory=dict)

    @classmethod
    def load(cls, file: Path) -> "JudgeResults":
        """Read the file. Raises AnswersError if it is damaged."""
        try:
            return cls.model_validate_json(file.read_bytes())
        except OSError as error:
            raise AnswersError(f"{file} is not readable: {error.strerror}") from error
        except ValidationError as error:
            raise AnswersError(f"{file} is no results file of judges: {first_problem(error)}") from error

    def save(self, file: Path) -> None:
        """Write the file; a reader sees the old one or the new one."""
        data: dict[str, Any] = self.model_dump(mode="json", exclude={"rows"})
        rows = {name: row.model_dump(mode="json", exclude_none=True) for name, row in sorted(self.rows.items())}
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
        head = json.dumps(data, indent=1).removesuffix("\n}")
        write_whole(file, f'{head},\n "rows": {{\n{lines}\n }}\n}}\n')


def judge_row(bank: Bank, half: Half, kept: AnswersFile, rules: AnswersFile | None = None) -> BenchRow:
    """Return the row of the judges behind these answers; `rules` has the lengths of the texts to compare with."""
    sample = _sample(bank, half, kept, "plain")
    again = _sample(bank, half, kept, "shuffled")
    changed: dict[str, JudgedSample] = {
        "no-totals": _sample(bank, half, kept, "no-totals"),
        "planted": _sample(bank, half, kept, "planted"),
    }
    asked = {one.name for one in bank.half(half)} & kept.of("plain").keys()
    return row_of(
        Evidence(
            sample,
            abstained=len(asked) - len(sample),
            again=again,
            ablations={name: one for name, one in changed.items() if len(one)},
            length=None if rules is None else length_only(_sample(bank, half, rules, "plain")),
            calibration=_calibration(_sample(bank, OTHER[half], kept, "plain")),
        )
    )


def baseline_rows(bank: Bank, half: Half, rules: AnswersFile, accuracy: float) -> dict[str, BenchRow]:
    """Return the rows of the baselines that need no judge: length alone, and rules degraded to this accuracy."""
    own, other = _sample(bank, half, rules, "plain"), _sample(bank, OTHER[half], rules, "plain")
    rows = {LENGTH: row_of(Evidence(length_only(own), calibration=_calibration(length_only(other))))}
    if len(other) >= FEW:
        deviation = noise_for_accuracy(other, accuracy)
        rows[NOISY] = row_of(Evidence(noisy(own, deviation), calibration=_calibration(noisy(other, deviation))))
    return rows


def _sample(bank: Bank, half: Half, kept: AnswersFile, variant: Any) -> JudgedSample:
    return judged_sample(bank, bank.half(half), kept.of(variant))


def _calibration(sample: JudgedSample) -> SpreadCalibration | None:
    """The calibration fitted on this sample; None if it is too small."""
    if len(sample) < FEW or pairs_accuracy(sample) is None:
        return None
    return fit(sample.score, sample.error, gained_more(sample.gain))
