"""A model server that accepts every connection and never answers: its callers wait until their own limit."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def silent_server() -> Iterator[str]:
    """Its address. Connections stay open until the end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        opened: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    opened.append(server.accept()[0])
                except OSError:  # closed: the measurement is over
                    return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)
        for connection in opened:
            connection.close()
