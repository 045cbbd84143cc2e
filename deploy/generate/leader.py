"""The lease filter of every query for a coordinator's figures. All coordinators answer Prometheus, but only the leader
reports; the figures of one that led before are old, and one that never led says 0."""

LEASE = 'zelda_lease_held_ratio{lease="coordinator"}'
LEADER = f" and on (namespace, instance) ({LEASE} == 1)"


def from_leader(name: str, selector: str = "") -> str:
    """A figure of the coordinator that leads."""
    return f"zelda_{name}{selector}{LEADER}"
