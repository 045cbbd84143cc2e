"""Exploration without a network: random options from archive cells, on all cores (Go-Explore's first phase)."""
