"""The files of the live page: read once, served with an ETag and a strict content security policy."""

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

DOCUMENTS: Final = {"/": "index.html", "/docs": "docs.html"}
MEDIA_TYPES: Final = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "media-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Scripts and styles load only from this server, so injected markup cannot load foreign code. Pictures and videos need
the token, which markup cannot send: the page fetches them and shows them as `blob:`."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file. `etag` changes with its content, so a browser never mixes two versions."""

    content: bytes
    media_type: str
    etag: str


@cache
def page_files() -> dict[str, PageFile]:
    """Path on the server -> file: the documents at their own paths, everything else below `/page/`."""
    root = files("services.coordinator.live") / "page"
    found = {f"/page/{name}": file for name, file in _below(root, "")}
    return {path: found.pop(f"/page/{name}") for path, name in DOCUMENTS.items()} | found


def _below(folder: Traversable, prefix: str) -> list[tuple[str, PageFile]]:
    found = []
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            found += _below(entry, f"{name}/")
        elif media_type := MEDIA_TYPES.get(name.rpartition(".")[2]):
            content = entry.read_bytes()
            found.append((name, PageFile(content, media_type, f'"{sha256(content).hexdigest()[:32]}"')))
    return found
