"""A server that accepts S3 uploads and answers each after a delay: the remote store of `bench/env.py`.

`python -m bench.harness.slow_store SECONDS` prints its port. It stores nothing and checks no signature. It stands for
another machine, so it runs at the lowest priority and takes no time from the games.
"""

import asyncio
import os
import sys

LIMIT = 1 << 26


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float) -> None:
    """Serve the requests of one connection."""
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
            return
        lines = head.decode("latin-1").lower().split("\r\n")
        length = next((int(line.split(":")[1]) for line in lines if line.startswith("content-length:")), 0)
        await reader.readexactly(length)
        await asyncio.sleep(delay_s)
        writer.write(b'HTTP/1.1 200 OK\r\nETag: "0"\r\nContent-Length: 0\r\n\r\n')
        await writer.drain()


async def main(delay_s: float) -> None:
    """Serve until the process is ended."""
    server = await asyncio.start_server(lambda r, w: answer(r, w, delay_s), "127.0.0.1", 0, limit=LIMIT)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    os.nice(19)
    asyncio.run(main(float(sys.argv[1])))
