"""Opens segment archives (segment.py has their layout).

Archives are untrusted data: unpacking is bounded regardless of the declared sizes, and nothing is extracted to a path.
"""

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from shared.contracts.base import sha256
from shared.contracts.segment import MANIFEST, SegmentManifest
from shared.errors import ContractError, DigestMismatch, ZeldaError

MAX_UNPACKED: Final = 64 * 1024 * 1024  # bytes; a segment has about 1 MB, more is an attack or a mistake
_USUAL: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class SegmentArchive:
    """An open archive: its manifest, and the other members on request."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        """Read the manifest. See `open_archive`."""
        self._file, self._room = file, MAX_UNPACKED
        self.manifest = SegmentManifest.from_bytes(self._content(MANIFEST, MAX_UNPACKED))

    @property
    def names(self) -> set[str]:
        """All members but the manifest."""
        return set(self._file.namelist()) - {MANIFEST}

    def read(self, name: str, limit: int = MAX_UNPACKED) -> bytes:
        """A member of at most `limit` bytes. ContractError if it has more, DigestMismatch if it was changed."""
        data = self._content(name, limit)
        if self.manifest.members.get(name) != sha256(data):
            raise DigestMismatch(f"segment {self.manifest.segment}: {name} differs from its digest in the manifest")
        return data

    def _content(self, name: str, limit: int) -> bytes:
        try:
            info = self._file.getinfo(name)
        except KeyError as error:
            raise ContractError(f"the segment's archive lacks {name}") from error
        if info.compress_type not in _USUAL:
            raise ContractError(f"{name} has an unsupported compression (method {info.compress_type})")
        limit = min(limit, self._room)
        with self._file.open(info) as member:
            data = member.read(limit + 1)  # unpacks at most this many bytes
        if len(data) > limit:
            raise ContractError(f"{name} unpacks to more than {limit} bytes, the limit of a segment")
        self._room -= len(data)
        return data


@contextmanager
def open_archive(raw: bytes) -> Iterator[SegmentArchive]:
    """The archive in these bytes. While it is open, any parser error becomes a ContractError."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as file:
            yield SegmentArchive(file)
    except (ZeldaError, MemoryError):
        raise
    except Exception as error:
        raise ContractError(f"not a segment archive: {type(error).__name__}: {error}"[:300]) from error


def read_manifest(raw: bytes) -> SegmentManifest:
    """The manifest alone; the other members stay unread."""
    with open_archive(raw) as archive:
        return archive.manifest
