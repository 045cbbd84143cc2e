"""Shortens the path that an exploration found, leg by leg (ADR 0027)."""
