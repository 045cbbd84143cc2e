"""Who may connect to whom: Kubernetes' rules for NetworkPolicies, for the release's pods and for namespaces.

A connection needs both sides: an egress rule of the sender and an ingress rule of the receiver. Policies add up; a side
that no policy selects is open (kubernetes.io/docs/concepts/services-networking/network-policies).
"""

from typing import Any

from tests.helm.rendering import NAMESPACE, Object

Labels = dict[str, str]


def selects(selector: dict[str, Any], labels: Labels) -> bool:
    """Whether a label selector matches."""
    exact = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    return exact and all(
        rule["key"] in labels if rule["operator"] == "Exists" else labels.get(rule["key"]) in rule["values"]
        for rule in selector.get("matchExpressions", [])
    )


def _rules(policies: list[Object], direction: str, pod: Labels) -> list[Object] | None:
    """The rules for one side of a pod; None if no policy restricts it."""
    kind = direction.capitalize()
    own = [p["spec"] for p in policies if kind in p["spec"]["policyTypes"] and selects(p["spec"]["podSelector"], pod)]
    return [rule for spec in own for rule in spec.get(direction, [])] if own else None


def _port_fits(rule: Object, port: int) -> bool:
    return not rule.get("ports") or port in {entry["port"] for entry in rule["ports"]}


def _peer_fits(peer: Object, labels: Labels, namespace: str) -> bool:
    if "namespaceSelector" in peer:
        place = selects(peer["namespaceSelector"], {"kubernetes.io/metadata.name": namespace})
        return place and selects(peer.get("podSelector", {}), labels)
    return namespace == NAMESPACE and "podSelector" in peer and selects(peer["podSelector"], labels)


def _allowed(rules: list[Object] | None, word: str, labels: Labels, namespace: str, port: int) -> bool:
    if rules is None:
        return True
    return any(
        _port_fits(rule, port) and (word not in rule or any(_peer_fits(peer, labels, namespace) for peer in rule[word]))
        for rule in rules
    )


def receives(policies: list[Object], pod: Labels, port: int, sender: Labels, namespace: str = NAMESPACE) -> bool:
    """Whether the receiver's side allows a connection."""
    return _allowed(_rules(policies, "ingress", pod), "from", sender, namespace, port)


def connects(policies: list[Object], sender: Labels, receiver: Labels, port: int) -> bool:
    """Whether one pod of the release's namespace reaches another, by both sides' rules for pods."""
    sends = _allowed(_rules(policies, "egress", sender), "to", receiver, NAMESPACE, port)
    return sends and receives(policies, receiver, port, sender)


def reaches_network(policies: list[Object], pod: Labels, port: int) -> bool:
    """Whether a pod may leave for addresses outside of the namespace, such as the API server's."""
    rules = _rules(policies, "egress", pod)
    if rules is None:
        return True
    return any(_port_fits(rule, port) and any("ipBlock" in peer for peer in rule.get("to", [])) for rule in rules)
