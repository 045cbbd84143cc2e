"""The lease filter of every query for a coordinator's figures. All coordinators answer Prometheus, but only the leader
updates its figures: those of a former leader are stale, and one that never led reports 0."""

LEASE = 'zelda_lease_held_ratio{lease="coordinator"}'
LEADER = f" and on (namespace, instance) ({LEASE} == 1)"


def from_leader(name: str, selector: str = "") -> str:
    """A query for a figure of the leading coordinator."""
    return f"zelda_{name}{selector}{LEADER}"
