"""Generates files under `charts/` and `deploy/` that are never edited by hand: `python -m deploy.generate`."""
