"""Compares selected pairs of an epoch's segments, as labels of its reward model."""
