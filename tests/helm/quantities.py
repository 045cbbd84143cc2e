"""Kubernetes quantities as numbers."""

import re

UNITS = {"": 1.0, "m": 0.001, "Mi": 2.0**20, "Gi": 2.0**30}


def amount(quantity: str) -> float:
    """Cores, bytes or a count."""
    number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", quantity).groups()  # type: ignore[union-attr]
    return float(number) * UNITS[unit]
