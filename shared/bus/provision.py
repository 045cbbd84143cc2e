"""Makes the bus equal to the topology: `python -m shared.bus.provision [--replicas N] [--without SERVICE ...]`.

Only this command creates or changes streams. It may run at any time and deletes no message that a declared
consumer still needs.
"""

import argparse
import asyncio
import sys
from collections.abc import Collection, Sequence
from typing import Final

from nats.js import JetStreamContext, api
from nats.js import errors as js_errors

from shared.bus.jetstream.bus import AWAY, NatsBus, connect
from shared.bus.jetstream.config import consumer_config, dead_stream_config, stream_config
from shared.bus.jetstream.former_consumers import remove_consumer, remove_former
from shared.bus.subjects import pattern
from shared.bus.topology import ROLES, STREAMS, Stream, stream_of
from shared.config.configure import read_or_exit
from shared.config.settings import BusOnlySettings, BusSettings
from shared.errors import Fatal, Transient, ZeldaError

WAIT_S: Final = 60.0
IDENTITY: Final = "provision"


async def provision(
    settings: BusSettings, replicas: int = 1, without: Collection[str] = (), wait_s: float = WAIT_S
) -> None:
    """Create or update streams and consumers, waiting up to `wait_s` for the bus.

    Services in `without` get no consumer: a stream keeps an event until every consumer has acknowledged it, so a
    consumer without a reader would fill the stream. For the same reason our consumers that this topology does not know
    are removed: another version of the product made them.
    """
    bus = await _connected(settings, wait_s)
    try:
        for stream in STREAMS:
            await _stream(bus.context, stream_config(stream, replicas))
        await _stream(bus.context, dead_stream_config(replicas))
        for service, role in ROLES.items():
            for subscription in role.subscriptions:
                stream = stream_of(subscription)
                if service in without:
                    await remove_consumer(
                        bus.context, stream.name, subscription.name, reason="its service is not deployed"
                    )
                else:
                    subjects = [pattern(event) for event in subscription.events]
                    await bus.context.add_consumer(stream.name, consumer_config(subscription, subjects))
        for stream in STREAMS:
            await remove_former(bus.context, stream.name, _declared(stream))
    except AWAY as error:
        raise Fatal(f"bus {settings.url}: provisioning failed: {error}") from error
    finally:
        await bus.close()


async def _connected(settings: BusSettings, wait_s: float) -> NatsBus:
    deadline = asyncio.get_running_loop().time() + wait_s
    while True:
        try:
            return await connect(settings, IDENTITY)
        except Transient:
            if asyncio.get_running_loop().time() > deadline:
                raise
        await asyncio.sleep(0.2)


async def _stream(context: JetStreamContext, config: api.StreamConfig) -> None:
    try:
        await context.add_stream(config)
    except js_errors.BadRequestError:  # it exists and differs
        await context.update_stream(config)


def _declared(stream: Stream) -> set[str]:
    """The consumers of a stream in this version's topology."""
    subscriptions = [subscription for role in ROLES.values() for subscription in role.subscriptions]
    return {subscription.name for subscription in subscriptions if stream_of(subscription) is stream}


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m shared.bus.provision", description=__doc__)
    parser.add_argument("--replicas", type=int, default=1, choices=(1, 3, 5), help="copies of each stream in a cluster")
    parser.add_argument(
        "--without", action="append", default=[], choices=sorted(ROLES), help="a service that is not deployed"
    )
    arguments = parser.parse_args(argv)
    settings = read_or_exit("provision", BusOnlySettings)
    try:
        asyncio.run(provision(settings.bus, arguments.replicas, arguments.without))
    except ZeldaError as error:
        sys.stderr.write(f"provision: {error}\n")
        return 1
    sys.stdout.write(f"provision: bus {settings.bus.url} has its streams and consumers\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
