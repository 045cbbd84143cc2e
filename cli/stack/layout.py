"""Where a local system keeps its files, and the secrets that it makes for itself (readable by the owner only)."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cli.errors import UNREACHABLE, CliError


@dataclass(frozen=True, slots=True)
class StackLayout:
    """Paths under one directory, usually `runs/.local`."""

    root: Path

    @property
    def logs(self) -> Path:
        """One log file for each process."""
        return self.root / "logs"

    @property
    def bus(self) -> Path:
        """The bus server's files."""
        return self.root / "bus"

    @property
    def store(self) -> Path:
        """The S3 server's files."""
        return self.root / "store"

    @property
    def connection(self) -> Path:
        """How a command line finds the running system."""
        return self.root / "connection.json"

    def secret(self, name: str) -> Path:
        """The file of a secret; made with a random value when it is missing."""
        path = self.root / "secrets" / name
        if not path.exists():
            write_secret(path, secrets.token_hex(24))
        return path

    def secret_text(self, name: str, text: str) -> Path:
        """A secret file with a given content."""
        path = self.root / "secrets" / name
        write_secret(path, text)
        return path

    def tokens(self) -> Path:
        """The API's token file: one viewer, one operator."""
        roles = {role: self.secret(role).read_text(encoding="utf-8") for role in ("viewer", "operator")}
        return self.secret_text("tokens", "".join(f"{role}:{token}\n" for role, token in roles.items()))


def write_secret(path: Path, text: str) -> None:
    """Write a file that only its owner can read, from the first byte on."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a running system answers, with which token, and the settings that lead to its bus and store.

    Settings name files of secrets, never secrets.
    """

    url: str
    token_file: Path
    pid: int
    settings: Mapping[str, str]

    def save(self, path: Path) -> None:
        """Let other terminals find it."""
        saved = {"url": self.url, "token_file": str(self.token_file), "pid": self.pid, "settings": dict(self.settings)}
        new = path.with_suffix(".new")
        new.write_text(json.dumps(saved, indent=2), encoding="utf-8")
        new.replace(path)  # nobody ever reads half of it

    @classmethod
    def load(cls, path: Path) -> "Connection | None":
        """The saved connection, or None if no system was started here; CliError if the file is damaged."""
        if not path.exists():
            return None
        try:
            saved = json.loads(path.read_text(encoding="utf-8"))
            settings = {str(name): str(value) for name, value in saved["settings"].items()}
            return cls(str(saved["url"]), Path(saved["token_file"]), int(saved["pid"]), settings)
        except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
            sentence = f"{path} does not say where the system runs: delete it, and start again with `zelda up`."
            raise CliError(UNREACHABLE, sentence) from error
