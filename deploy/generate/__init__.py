"""Generates the files under `charts/` and `deploy/` that must never be edited by hand: `python -m deploy.generate`."""
