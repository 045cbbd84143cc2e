"""Free TCP ports of the loopback interface. A free port may be taken at any time: use it immediately."""

import secrets
import socket
from hashlib import sha256
from pathlib import Path
from typing import Final

from cli.errors import USAGE, CliError

# SeaweedFS opens a gRPC port 10,000 above each HTTP port. Both stay below 32,768: the kernel gives higher ports to
# outgoing connections, which could take a port between the check and its use.
PORT_RANGE = range(20_000, 22_700)
USUAL_PORTS: Final = range(22_700, 24_700)  # apart from the others, which would take them at random
GRPC_OFFSET: Final = 10_000
MAX_TRIES: Final = 1_000


class PortAllocator:
    """Allocates free ports of PORT_RANGE, each once."""

    def __init__(self) -> None:
        self._ports = PORT_RANGE
        self._allocated: set[int] = set()

    def allocate(self, wanted: int | None = None) -> int:
        """Return `wanted`, or any port that is free together with the one 10,000 above it; CliError if taken."""
        if wanted is not None:
            if not is_free(wanted):
                raise CliError(
                    USAGE, f"Port {wanted} is in use: choose another port, or omit --port to get a free one."
                )
            return self._claim(wanted)
        for _ in range(MAX_TRIES):
            port = secrets.choice(self._ports)
            if port not in self._allocated and is_free(port) and is_free(port + GRPC_OFFSET):
                return self._claim(port)
        raise CliError(
            USAGE, f"No port between {self._ports.start} and {self._ports.stop} is free: stop programs that use them."
        )

    def _claim(self, port: int) -> int:
        self._allocated.add(port)
        return port


def usual_port(root: Path) -> int | None:
    """The port of the page of a system in this directory, equal at each start; None while it is taken."""
    number = int.from_bytes(sha256(str(root.resolve()).encode()).digest()[:4])
    port = USUAL_PORTS[number % len(USUAL_PORTS)]
    return port if is_free(port) else None


def is_free(port: int) -> bool:
    """Whether no process listens on this port of the loopback interface."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
