"""Compares the observations: `python -m bench.observations`."""
