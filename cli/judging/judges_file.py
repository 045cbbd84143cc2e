"""Reads the judges that a command is to ask."""

from pathlib import Path
from typing import TYPE_CHECKING

from cli.errors import USAGE, CliError, end_sentence

if TYPE_CHECKING:
    from services.judge.config import JudgesFile


def read_judges(path: Path | None, *, rules: bool, default_url: str = "", rubric: str | None = None) -> "JudgesFile":
    """The judges of a file, the built-in ones at `default_url`, or with `rules` the rules judge.

    `rubric` replaces their rubric version. CliError for a file beside `rules`, or with what is wrong in the file.
    """
    if rules and path is not None:
        raise CliError(USAGE, "--judges and --rules both choose the judges: use only one of them.")
    from services.judge.config import load_judges, rules_only
    from shared.config.yaml_document import ConfigError

    try:
        file = rules_only() if rules else load_judges(path, default_url)
        return file if rubric is None else file.with_rubric(rubric)
    except ConfigError as error:
        raise CliError(USAGE, end_sentence(str(error))) from error
