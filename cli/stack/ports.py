"""Free TCP ports of the loopback interface. A port is only free now: use it at once."""

import secrets
import socket
from typing import Final

# SeaweedFS puts a gRPC port 10,000 above each HTTP port. Both stay below 32,768, where the kernel takes the local
# ports of outgoing connections from: such a port may be taken between our look and our use.
PORT_RANGE: Final = range(20_000, 22_700)
GRPC_OFFSET: Final = 10_000
MAX_TRIES: Final = 1_000


class PortAllocator:
    """Hands out free ports, each once, and refuses a chosen one that is taken."""

    def __init__(self) -> None:
        self._given: set[int] = set()

    def free(self, wanted: int | None = None) -> int:
        """`wanted` if it is free, else ValueError; without `wanted`, any free port whose +10,000 is free, too."""
        if wanted is not None:
            if not is_free(wanted):
                raise ValueError(f"port {wanted} is taken: choose another one, or leave it out for a free one")
            return self._give(wanted)
        for _ in range(MAX_TRIES):
            port = secrets.choice(PORT_RANGE)
            if port not in self._given and is_free(port) and is_free(port + GRPC_OFFSET):
                return self._give(port)
        raise ValueError(f"no free port between {PORT_RANGE.start} and {PORT_RANGE.stop}: end what is running there")

    def _give(self, port: int) -> int:
        self._given.add(port)
        return port


def is_free(port: int) -> bool:
    """Whether nobody listens on the port of the loopback interface."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
