"""The NATS users and their permissions, derived from the topology of the services."""

from shared.bus.subjects import pattern
from shared.bus.topology import DEAD_ROOT, DEAD_STREAM, STREAMS, Role, dead_subject, stream_of

Permissions = dict[str, list[str]]


def service_permissions(name: str, role: Role) -> Permissions:
    """The least permissions of a service: its events, its consumers, dead letters and its inbox."""
    publish = [pattern(event) for event in role.publishes]
    streams = {stream.name for stream in STREAMS if set(stream.events) & set(role.publishes)}
    for subscription in role.subscriptions:
        stream = stream_of(subscription).name
        streams.add(stream)
        publish += [
            f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{subscription.name}",
            f"$JS.API.CONSUMER.INFO.{stream}.{subscription.name}",
            f"$JS.API.CONSUMER.CREATE.{stream}.{subscription.name}",  # recreates a lost consumer under its name
            f"$JS.ACK.{stream}.{subscription.name}.>",
            dead_subject(subscription),
        ]
    if role.handles_dead_letters:
        publish += [f"$JS.API.STREAM.MSG.{verb}.{DEAD_STREAM}" for verb in ("GET", "DELETE")]
    publish += [f"$JS.API.STREAM.INFO.{stream}" for stream in streams]
    return {"publish": sorted(publish), "subscribe": [f"_INBOX_{name}.>"]}


def provision_permissions() -> Permissions:
    """Permissions of the hook job and of operators who handle dead letters: only they manage streams."""
    return {"publish": ["$JS.API.>", f"{DEAD_ROOT}.>", "zelda.v1.>"], "subscribe": ["_INBOX_provision.>"]}
