"""The files of a local stack: logs, server data, generated secrets (readable by the owner only), connection."""

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from cli.errors import UNREACHABLE, CliError
from cli.stack.port_owner import listens
from shared.process.whole_file import write_whole_file


@dataclass(frozen=True, slots=True)
class StackLayout:
    """Paths below one directory, by default `runs/.local`."""

    root: Path

    @property
    def logs(self) -> Path:
        """Directory of the log files, one per process."""
        return self.root / "logs"

    @property
    def bus(self) -> Path:
        """Data directory of the bus server."""
        return self.root / "bus"

    @property
    def store(self) -> Path:
        """Data directory of the S3 server."""
        return self.root / "store"

    @property
    def connection(self) -> Path:
        """The file from which other commands learn how to reach the running system."""
        return self.root / "connection.json"

    @property
    def ended(self) -> Path:
        """The last connection of a system here: it describes the store also after the end of the system."""
        return self.root / "ended.json"

    def secret(self, name: str) -> Path:
        """Return the file of a secret; create it with a random value if it is missing."""
        path = self.root / "secrets" / name
        if not path.exists() or not path.stat().st_size:  # a full disk may have left it empty
            write_secret(path, secrets.token_hex(24))
        return path

    def secret_text(self, name: str, text: str) -> Path:
        """Write a secret file with the given content and return its path."""
        path = self.root / "secrets" / name
        write_secret(path, text)
        return path

    def tokens(self) -> Path:
        """Write the API's token file, with one viewer and one operator, and return its path."""
        roles = {role: self.secret(role).read_text(encoding="utf-8") for role in ("viewer", "operator")}
        return self.secret_text("tokens", "".join(f"{role}:{token}\n" for role, token in roles.items()))


def write_secret(path: Path, text: str) -> None:
    """Write a file that only its owner can read, as a whole: half a secret would be kept for good."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_whole_file(path, text.encode(), private=True)


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach a running system: URL, token file, process id, and the settings of its bus and store.

    Settings name files with secrets; they never contain secrets.
    """

    url: str
    token_file: Path
    pid: int
    settings: Mapping[str, str]

    def save(self, path: Path) -> None:
        """Save it atomically for commands in other terminals."""
        saved = {"url": self.url, "token_file": str(self.token_file), "pid": self.pid, "settings": dict(self.settings)}
        new = path.with_suffix(".new")
        new.write_text(json.dumps(saved, indent=2), encoding="utf-8")
        new.replace(path)  # atomic: no reader sees half a file

    @property
    def alive(self) -> bool:
        """Whether the system that saved this still listens at its address.

        A killed system leaves its connection behind. Its process id or port may belong to another program by now, which
        must not get the token.
        """
        port = urlsplit(self.url).port
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # another user's process is not the system of this directory
            return False
        return port is not None and listens(self.pid, port)

    @classmethod
    def of_running(cls, path: Path) -> "Connection | None":
        """Load the connection of a system that still runs; else None. CliError if the file is damaged."""
        saved = cls.load(path)
        return saved if saved is not None and saved.alive else None

    @classmethod
    def load(cls, path: Path) -> "Connection | None":
        """Load the saved connection; None if no system runs here, CliError if the file is damaged."""
        if not path.exists():
            return None
        try:
            saved = json.loads(path.read_text(encoding="utf-8"))
            settings = {str(name): str(value) for name, value in saved["settings"].items()}
            return cls(str(saved["url"]), Path(saved["token_file"]), int(saved["pid"]), settings)
        except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
            message = f"{path} is damaged: delete it and restart the system with `zelda up`."
            raise CliError(UNREACHABLE, message) from error
