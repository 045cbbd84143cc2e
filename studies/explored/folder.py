"""A folder of explored paths: one JSON file for each exploration, which another study or machine reads."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from services.trainer.restarts.explored_path import ExploredPath
from shared.contracts.base import sha256
from shared.errors import ContractError
from studies.whole_file import write_whole

DIGITS = 12  # of the digest in a file's name


class ExploredPathFolder:
    """Explored paths by what decided their explorations: world, seed, settings, and the digest of the ROM."""

    def __init__(self, folder: Path) -> None:
        """A missing folder is an empty one."""
        self._folder = folder

    def find(self, exploration: Mapping[str, Any]) -> ExploredPath | None:
        """The path of this exploration; None if the folder has none. ContractError, with the file, if it is damaged."""
        file = self._file(exploration)
        if not file.exists():
            return None
        try:
            return ExploredPath.from_bytes(file.read_bytes())
        except ContractError as error:
            raise ContractError(f"{file}: {error}; remove it, and the trial explores again") from error

    def keep(self, found: ExploredPath) -> None:
        """Write the path, in place of an earlier one of the same exploration."""
        write_whole(self._file(found.exploration), found.model_dump_json(indent=1) + "\n")

    def _file(self, exploration: Mapping[str, Any]) -> Path:
        digest = sha256(json.dumps(exploration, sort_keys=True).encode())[:DIGITS]
        world = str(exploration["world"]).replace(":", "-")
        return self._folder / f"{world}-{exploration['seed']}-{digest}.json"
