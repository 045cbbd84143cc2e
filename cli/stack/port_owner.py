"""Which process listens on a port of loopback: a free port may be taken between its choice and its use.

Whoever listens there could answer our probes and receive our tokens. Linux shows the owner in /proc.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
LISTENING: Final = "0A"  # TCP_LISTEN in /proc/net/tcp, see proc(5)
KNOWN: Final = sys.platform == "linux"


def listens(pid: int, port: int) -> bool:
    """Whether the process or one of its descendants listens on the port; True where the platform does not show it."""
    return port in listening_ports(pid) if KNOWN else True


def listening_ports(pid: int) -> set[int]:
    """Ports on which the process or one of its descendants listens."""
    listeners = _listeners()
    return {listeners[node] for one in family(pid) for node in _sockets(one) if node in listeners}


def family(pid: int) -> Iterator[int]:
    """The process and all its descendants."""
    yield pid
    for children in (PROC / str(pid) / "task").glob("*/children"):
        for child in _read(children).split():
            yield from family(int(child))


def _listeners() -> dict[str, int]:
    """Port by inode of every listening socket."""
    found = {}
    for table in ("tcp", "tcp6"):
        for line in _read(PROC / "net" / table).splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING:
                found[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    return found


def _sockets(pid: int) -> set[str]:
    """Inodes of the sockets that a process has open."""
    found = set()
    for file in (PROC / str(pid) / "fd").glob("*"):
        try:
            target = str(file.readlink())
        except OSError:  # closed meanwhile
            continue
        if target.startswith("socket:["):
            found.add(target[len("socket:[") : -1])
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:  # the process has ended
        return ""
