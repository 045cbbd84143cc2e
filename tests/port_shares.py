"""Shares of the ports of local systems, for programs that start systems at the same time.

A port is free until its server starts, so two programs with the same range could choose the same port.
"""

from cli.stack import ports
from cli.stack.ports import PortAllocator


def share_of_ports(number: int, of: int) -> range:
    """The ports of program `number`, counted from 0, of so many."""
    size = len(ports.PORT_RANGE) // of
    return ports.PORT_RANGE[number * size : (number + 1) * size]


class SharePortAllocator(PortAllocator):
    """Allocates the free ports of one program's share, each once."""

    def __init__(self, number: int, of: int) -> None:
        super().__init__()
        self._ports = share_of_ports(number, of)
