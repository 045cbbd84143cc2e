"""Reads the store of a system that no longer runs: only its S3 server starts, for the time of one command."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cli.console import print_status
from cli.errors import FAILED, CliError
from cli.stack.layout import Connection, StackLayout
from cli.stack.lock import locked_directory
from cli.stack.ports import PortAllocator
from cli.stack.process import StackError, SupervisedProcess
from cli.stack.servers import s3_spec
from cli.stack.services import store_settings


@contextmanager
def ended_system_settings(root: Path) -> Iterator[Mapping[str, str] | None]:
    """The settings with which the store below `root` can be read during the body; None if no system ever ran there."""
    layout = StackLayout(root.absolute())
    former = Connection.load(layout.ended)
    if former is None:
        yield None
    elif former.settings["ZELDA_STORE__URL"].startswith("file://"):
        yield former.settings
    else:
        # A system that starts meanwhile would open the same files.
        with locked_directory(root, "command that reads the store", "wait for it"):
            yield from _served(layout, former)


def _served(layout: StackLayout, former: Connection) -> Iterator[Mapping[str, str]]:
    allocator = PortAllocator()
    port = allocator.allocate()
    server = SupervisedProcess(s3_spec(layout, allocator, port), layout.logs / "store.log", print_status)
    with asyncio.Runner() as runner:
        try:
            runner.run(server.start())
            yield {**former.settings, **store_settings(layout, former.settings["ZELDA_STORE__URL"], port)}
        except StackError as error:
            raise CliError(FAILED, str(error)) from error
        finally:
            runner.run(server.kill())  # each answered write is in its files, and stopping it takes up to 5 s
