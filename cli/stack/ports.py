"""Free TCP ports of the loopback interface. A port is only free now: use it at once."""

import secrets
import socket
from typing import Final

# SeaweedFS puts a gRPC port 10,000 above each HTTP port. Both stay below 32,768, where the kernel takes the local
# ports of outgoing connections from: such a port may be taken between our look and our use.
CHOICE: Final = range(20_000, 22_700)
ABOVE: Final = 10_000
TRIES: Final = 1_000


class Ports:
    """Hands out free ports, each once, and refuses a chosen one that is taken."""

    def __init__(self) -> None:
        self._given: set[int] = set()

    def free(self, wanted: int | None = None) -> int:
        """`wanted` if it is free, else ValueError; without `wanted`, any free port whose +10,000 is free, too."""
        if wanted is not None:
            if not is_free(wanted):
                raise ValueError(f"port {wanted} is taken: choose another one, or leave it out for a free one")
            return self._give(wanted)
        for _ in range(TRIES):
            port = secrets.choice(CHOICE)
            if port not in self._given and is_free(port) and is_free(port + ABOVE):
                return self._give(port)
        raise ValueError(f"no free port between {CHOICE.start} and {CHOICE.stop}: end what is running there")

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
